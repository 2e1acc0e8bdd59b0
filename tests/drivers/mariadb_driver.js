// Uses a server through npm mariadb. See README.md.
'use strict';

const assert = require('node:assert').strict;
// An ES module, which Node 18 does not give to require(), and import() does not look into NODE_PATH.
let mariadb;
const loaded = import(require.resolve('mariadb')).then((module) => { mariadb = module.default ?? module; });

const [host, port, user, password, database] = process.argv.slice(2);
const ca = process.env.DRIVERS_TLS_CA;
const ssl = ca ? { ssl: { ca: require('node:fs').readFileSync(ca) } } : {};
// The server's key is fetched without TLS: needed for caching_sha2_password.
const options = { ...ssl, host, port: Number(port), user, password, database, allowPublicKeyRetrieval: true, insertIdAsNumber: true, bigIntAsNumber: true };
const TEXT = "naïve 漢字 🐬 'quoted' \\ \"double\" `tick` -- no comment";

// Several times in a row, so that every replica has answered.
async function eventually(what, read, want) {
  const end = Date.now() + 10000;
  for (let right = 0; right < 8;) {
    const got = await read();
    try {
      assert.deepEqual(got, want, what);
      right += 1;
    } catch (error) {
      if (Date.now() > end) throw error;
      right = 0;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

async function rejects(promise, errno) {
  await assert.rejects(promise, (error) => { assert.equal(error.errno, errno, String(error)); return true; });
}

const plain = (rows) => Array.from(rows, (row) => ({ ...row }));

async function values(db) {
  await db.query('DROP TABLE IF EXISTS mdb_values');
  await db.query('CREATE TABLE mdb_values(id INT AUTO_INCREMENT PRIMARY KEY, n INT, f DOUBLE, t VARCHAR(200) CHARACTER SET utf8mb4, b BLOB)');
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  await db.beginTransaction();
  const one = await db.query('INSERT INTO mdb_values(n, f, t, b) VALUES (?, ?, ?, ?)', [-5, 1.5, TEXT, bytes]);
  assert.deepEqual([one.affectedRows, one.insertId], [1, 1]);
  const two = await db.execute('INSERT INTO mdb_values(n, f, t, b) VALUES (?, ?, ?, ?)', [-5, 1.5, TEXT, bytes]);
  assert.deepEqual([two.affectedRows, two.insertId], [1, 2]);
  const want = { n: -5, f: 1.5, t: TEXT, b: bytes };
  const select = 'SELECT n, f, t, b FROM mdb_values WHERE id <= ? ORDER BY id';
  assert.deepEqual(plain(await db.query(select, [2])), [want, want], 'text rows');
  // Twice: from the second time on the server may leave out the definitions.
  for (let i = 0; i < 2; i += 1) assert.deepEqual(plain(await db.execute(select, [2])), [want, want], 'binary rows');
  await db.commit();
  // One bulk command to MariaDB, a pipeline of executes to MySQL.
  const bulk = await db.batch('INSERT INTO mdb_values(n, t) VALUES (?, ?)', Array.from({ length: 500 }, (_, i) => [i, i % 7 ? `row ${i}` : null]));
  assert.equal([].concat(bulk).reduce((sum, result) => sum + result.affectedRows, 0), 500);
  await eventually('committed rows', async () => Number((await db.query('SELECT COUNT(*) AS c FROM mdb_values'))[0].c), 502);
  await db.beginTransaction();
  await db.query('DELETE FROM mdb_values');
  await db.rollback();
  await db.beginTransaction();
  assert.equal(Number((await db.query('SELECT COUNT(*) AS c FROM mdb_values'))[0].c), 502, 'after a rollback');
  await db.commit();
}

async function statements(db) {
  for (let round = 0; round < 3; round += 1) {
    for (let i = 0; i < 40; i += 1) {
      assert.equal(Number((await db.execute(`SELECT ${i} + ? AS sum`, [round]))[0].sum), i + round);
    }
  }
  const statement = await db.prepare('SELECT ? AS a');
  assert.equal((await statement.execute(['first']))[0].a, 'first');
  assert.equal((await statement.execute(['second']))[0].a, 'second');
  statement.close();
  await rejects(db.execute('SELECT no_such FROM mdb_values WHERE id = ?', [1]), 1054);
  await rejects(db.query('INSERT INTO mdb_values(id) VALUES (?)', [1]), 1062);
  // Commands are sent without waiting for answers.
  const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => db.query('SELECT ? AS n', [i])));
  answers.forEach((rows, i) => assert.equal(Number(rows[0].n), i));
}

async function state(db) {
  await db.query('SET @answer = 42');
  assert.equal(Number((await db.query('SELECT @answer AS a'))[0].a), 42);
  await db.query('CREATE TEMPORARY TABLE mdb_temporary(a INT)');
  await db.query('INSERT INTO mdb_temporary VALUES (1), (2)');
  assert.equal(Number((await db.execute('SELECT SUM(a) AS s FROM mdb_temporary'))[0].s), 3);
  await db.reset();
  assert.equal((await db.query('SELECT @answer AS a'))[0].a, null, 'after a reset');
  await rejects(db.query('SELECT * FROM mdb_temporary'), 1146);
  // The library itself refuses it with MySQL.
  if (db.info.isMariaDB()) await db.changeUser({ user, password, database, charset: 'utf8mb4' });
  assert.equal((await db.query('SELECT DATABASE() AS d'))[0].d, database);
  await db.ping();
}

async function sizes(db) {
  const limit = Number((await db.query('SELECT @@max_allowed_packet AS m'))[0].m);
  for (const size of [250, 251, 65535, 65536, 2 ** 20, 2 ** 24 - 1, 2 ** 24, 17 * 2 ** 20]) {
    if (size + 100 < limit) {
      const text = 'a'.repeat(size);
      assert.equal(Number((await db.query('SELECT LENGTH(?) AS l', [text]))[0].l), size);
      assert.equal((await db.execute(`SELECT REPEAT('b', ${size}) AS t`))[0].t.length, size);
    }
  }
  await db.beginTransaction();
  let rows = 0;
  for await (const row of db.queryStream('SELECT a.id FROM mdb_values a JOIN mdb_values b WHERE b.id <= 100')) rows += row.id ? 1 : 0;
  assert.equal(rows, 502 * 100, 'rows of a stream');
  await db.commit();
}

async function severalResults() {
  const db = await mariadb.createConnection({ ...options, multipleStatements: true });
  const results = await db.query('SELECT 1 AS a; SET @x = 5; SELECT @x AS b');
  assert.deepEqual([Number(results[0][0].a), results.length, Number(results[2][0].b)], [1, 3, 5]);
  await db.end();
}

async function pool() {
  const many = mariadb.createPool({ ...options, connectionLimit: 10 });
  await Promise.all(Array.from({ length: 300 }, async (_, i) => {
    const rows = await (i % 2 ? many.query('SELECT ? AS n', [i]) : many.execute('SELECT ? AS n', [i]));
    assert.equal(Number(rows[0].n), i);
  }));
  await many.end();
}

async function main() {
  await loaded;
  const db = await mariadb.createConnection(options);
  assert.equal((await db.query('SELECT DATABASE() AS d'))[0].d, database);
  await values(db);
  await statements(db);
  await state(db);
  await severalResults();
  await sizes(db);
  await pool();
  await rejects(mariadb.createConnection({ ...options, password: `${password}x` }), 1045);
  await db.query('DROP TABLE mdb_values');
  await db.end();
}

// A pool that is ended while it opens a spare connection may leave that one open, which would keep the process alive.
main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
