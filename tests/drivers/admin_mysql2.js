// Uses the admin port of Atlas through npm mysql2, as a dashboard does. See README.md.
'use strict';

const assert = require('node:assert').strict;
const mysql = require('mysql2/promise');

const [host, port, user, password, database] = process.argv.slice(2);

async function main() {
  const pool = mysql.createPool({ host, port: Number(port), user, password, database, connectionLimit: 2 });
  const [backends, fields] = await pool.query('SELECT * FROM backends');
  assert.deepEqual(fields.map((field) => field.name), ['backend_ndx', 'address', 'state', 'type']);
  assert.deepEqual(backends.map((row) => [row.backend_ndx, row.state, row.type]), [[1, 'up', 'rw'], [2, 'up', 'ro'], [3, 'up', 'ro']]);
  // Prepared, where all columns are texts.
  const [prepared] = await pool.execute('SELECT * FROM backends');
  assert.deepEqual(prepared.map((row) => row.backend_ndx), ['1', '2', '3']);
  const [[version]] = await pool.query('SELECT @@version_comment, @@max_allowed_packet, VERSION() AS v');
  assert.match(version.v, /Atlas/);
  await assert.rejects(pool.query('SHOW NOTHING'), (error) => { assert.equal(error.errno, 1105); return true; });
  const connection = await pool.getConnection();
  await connection.ping();
  await connection.changeUser({ user, password });
  await connection.query('SHOW POOLS;');
  connection.release();
  await pool.end();
}

main().catch((error) => { console.error(error); process.exit(1); });
