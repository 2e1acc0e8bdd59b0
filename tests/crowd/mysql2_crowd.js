// Many clients of npm mysql2 that work at random. See README.md.
'use strict';

const mysql = require('mysql2/promise');

require('./crowd.js').run({
  name: 'm2-',
  async connect(options) {
    const db = await mysql.createConnection({ ...options, rowsAsArray: true });
    // One that is destroyed complains to nobody.
    db.connection.on('error', () => {});
    return db;
  },
  ask: async (db, sql, values) => (await db.query(sql, values))[0],
  execute: async (db, sql, values) => (await db.execute(sql, values))[0],
  // It has COM_RESET_CONNECTION in the inner connection only.
  reset: (db) => new Promise((resolve, reject) => { db.connection.reset((fault) => (fault ? reject(fault) : resolve())); }),
  end: (db) => db.end(),
  destroy: (db) => db.destroy(),
  code: (error) => error?.errno,
  id: (result) => result.insertId,
});
