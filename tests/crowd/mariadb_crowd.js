// Many clients of npm mariadb that work at random. See README.md.
'use strict';

// An ES module, which Node 18 does not give to require(), and import() does not look into NODE_PATH.
import(require.resolve('mariadb')).then((module) => {
  const mariadb = module.default ?? module;
  require('./crowd.js').run({
    name: 'mdb',
    async connect(options) {
      const db = await mariadb.createConnection({ ...options, rowsAsArray: true, allowPublicKeyRetrieval: true, insertIdAsNumber: true, bigIntAsNumber: true });
      // One that is destroyed complains to nobody.
      db.on('error', () => {});
      return db;
    },
    ask: async (db, sql, values) => rows(await db.query(sql, values)),
    execute: async (db, sql, values) => rows(await db.execute(sql, values)),
    reset: (db) => db.reset(),
    end: (db) => db.end(),
    destroy: (db) => db.destroy(),
    code: (error) => error?.errno,
    id: (result) => result.insertId,
  });
});

// Without the names of the columns, which it hangs on the array.
const rows = (result) => (Array.isArray(result) ? Array.from(result) : result);
