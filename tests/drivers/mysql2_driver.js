// Uses a server through npm mysql2. See README.md.
'use strict';

const assert = require('node:assert').strict;
const mysql = require('mysql2/promise');

const [host, port, user, password, database] = process.argv.slice(2);
const ca = process.env.DRIVERS_TLS_CA;
const ssl = ca ? { ssl: { ca: require('node:fs').readFileSync(ca) } } : {};
const options = { ...ssl, host, port: Number(port), user, password, database, charset: 'utf8mb4', supportBigNumbers: true };
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

async function values(db) {
  await db.query('DROP TABLE IF EXISTS m2_values');
  await db.query(`CREATE TABLE m2_values(id INT AUTO_INCREMENT PRIMARY KEY, n BIGINT, d DECIMAL(20,4), f DOUBLE,
    t VARCHAR(200) CHARACTER SET utf8mb4, b BLOB, w DATETIME(3))`);
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  const when = new Date(Date.UTC(2026, 10, 29, 23, 59, 58, 123));
  await db.beginTransaction();
  const [one] = await db.query('INSERT INTO m2_values(n, d, f, t, b, w) VALUES (?, ?, ?, ?, ?, ?)', ['-9223372036854775808', '-1.2500', 1.5, TEXT, bytes, when]);
  assert.deepEqual([one.affectedRows, one.insertId], [1, 1]);
  // The binary protocol this time.
  const [two] = await db.execute('INSERT INTO m2_values(n, d, f, t, b, w) VALUES (?, ?, ?, ?, ?, ?)', ['-9223372036854775808', '-1.2500', 1.5, TEXT, bytes, when]);
  assert.deepEqual([two.affectedRows, two.insertId], [1, 2]);
  const want = { n: '-9223372036854775808', d: '-1.2500', f: 1.5, t: TEXT, b: bytes, w: when };
  const select = 'SELECT n, d, f, t, b, w FROM m2_values WHERE id <= ? ORDER BY id';
  assert.deepEqual((await db.query(select, [2]))[0].map((row) => ({ ...row })), [want, want], 'text rows');
  assert.deepEqual((await db.execute(select, [2]))[0].map((row) => ({ ...row })), [want, want], 'binary rows');
  const [nulls] = await db.execute('SELECT ? AS a, ? AS b, ? AS c', [null, '', 'x']);
  assert.deepEqual({ ...nulls[0] }, { a: null, b: '', c: 'x' });
  await db.commit();
  await eventually('committed rows', async () => (await db.execute('SELECT COUNT(*) AS c FROM m2_values'))[0][0].c, 2);
  await db.beginTransaction();
  await db.query('DELETE FROM m2_values');
  await db.rollback();
  await db.beginTransaction();
  assert.equal((await db.query('SELECT COUNT(*) AS c FROM m2_values'))[0][0].c, 2, 'after a rollback');
  await db.commit();
}

async function statements(db) {
  // Many statements on one connection, used again and in turns.
  for (let round = 0; round < 3; round += 1) {
    for (let i = 0; i < 40; i += 1) {
      const [rows] = await db.execute(`SELECT ${i} + ? AS sum`, [round]);
      assert.equal(Number(rows[0].sum), i + round);
    }
  }
  const statement = await db.prepare('SELECT ? AS a');
  assert.equal((await statement.execute(['first']))[0][0].a, 'first');
  assert.equal((await statement.execute(['second']))[0][0].a, 'second');
  await statement.close();
  db.unprepare('SELECT 0 + ? AS sum');
  await rejects(db.execute('SELECT no_such FROM m2_values WHERE id = ?', [1]), 1054);
  await rejects(db.execute('INSERT INTO m2_values(id) VALUES (?)', [1]), 1062);
}

async function state(db) {
  await db.query('SET @answer = 42');
  assert.equal(Number((await db.query('SELECT @answer AS a'))[0][0].a), 42);
  assert.equal(Number((await db.execute('SELECT @answer AS a'))[0][0].a), 42, 'prepared');
  await db.query('CREATE TEMPORARY TABLE m2_temporary(a INT)');
  await db.execute('INSERT INTO m2_temporary VALUES (?), (?)', [1, 2]);
  assert.equal(Number((await db.execute('SELECT SUM(a) AS s FROM m2_temporary'))[0][0].s), 3);
  await db.query("SET SESSION time_zone = '+03:00'");
  assert.equal((await db.execute('SELECT @@time_zone AS z'))[0][0].z, '+03:00');
  await db.changeUser({ user, password, database });
  assert.equal((await db.query('SELECT @answer AS a'))[0][0].a, null, 'after a change of user');
  await rejects(db.query('SELECT * FROM m2_temporary'), 1146);
  await db.ping();
}

async function severalResults() {
  const db = await mysql.createConnection({ ...options, multipleStatements: true, infileStreamFactory: () => require('node:stream').Readable.from([Buffer.from('1,one\n'), Buffer.from('2,two\n')]) });
  const [results] = await db.query('SELECT 1 AS a; SET @x = 5; SELECT @x AS b');
  assert.deepEqual([results[0][0].a, results.length, Number(results[2][0].b)], [1, 3, 5]);
  await db.query('DROP TABLE IF EXISTS m2_loaded');
  await db.query('CREATE TABLE m2_loaded(a INT, b VARCHAR(10))');
  const [loaded] = await db.query("LOAD DATA LOCAL INFILE 'any' INTO TABLE m2_loaded FIELDS TERMINATED BY ','");
  assert.equal(loaded.affectedRows, 2);
  await db.query('DROP TABLE m2_loaded');
  await db.end();
}

async function sizes(db) {
  const limit = Number((await db.query('SELECT @@max_allowed_packet AS m'))[0][0].m);
  for (const size of [250, 251, 65535, 65536, 2 ** 20, 2 ** 24 - 1, 2 ** 24, 17 * 2 ** 20]) {
    if (size + 100 < limit) {
      const text = 'a'.repeat(size);
      assert.equal((await db.query('SELECT LENGTH(?) AS l', [text]))[0][0].l, size);
      assert.equal((await db.execute('SELECT LENGTH(?) AS l', [text]))[0][0].l, size);
      assert.equal((await db.execute(`SELECT REPEAT('b', ${size}) AS t`))[0][0].t.length, size);
    }
  }
}

async function pool() {
  const many = mysql.createPool({ ...options, connectionLimit: 10 });
  await Promise.all(Array.from({ length: 300 }, async (_, i) => {
    const [rows] = await (i % 2 ? many.query('SELECT ? AS n', [i]) : many.execute('SELECT ? AS n', [i]));
    assert.equal(Number(rows[0].n), i);
  }));
  await many.end();
}

async function main() {
  const db = await mysql.createConnection(options);
  assert.equal((await db.query('SELECT DATABASE() AS d'))[0][0].d, database);
  await values(db);
  await statements(db);
  await state(db);
  await severalResults();
  await sizes(db);
  await pool();
  await rejects(mysql.createConnection({ ...options, password: `${password}x` }), 1045);
  await db.query('DROP TABLE m2_values');
  await db.end();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
