// What the crowds of the two Node drivers have in common; each gives a way to its driver. See README.md for what they do and how
// it is called.
'use strict';

const [host, port, user, password, database, clients, seconds, seed] = process.argv.slice(2);
const ZONES = ['+01:00', '+05:30', '-03:00'];
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A generator of small numbers, the same in every run.
function dice(start) {
  let state = BigInt(start) * 0x9e3779b97f4a7c15n + 1n;
  return (n) => {
    state ^= (state << 13n) & 0xffffffffffffffffn;
    state ^= state >> 7n;
    state ^= (state << 17n) & 0xffffffffffffffffn;
    return Number(state % BigInt(n));
  };
}

// way: { name, connect(options), ask(db, sql, values) -> rows as arrays or the result, execute, reset, end, destroy, code(error), id(result) }
exports.run = async (way) => {
  const faults = [];
  const all = [];
  const end = Date.now() + 1000 * Number(seconds);

  class Client {
    constructor(number) {
      this.name = `${way.name}${seed}-${number}`;
      this.below = dice(1000 * Number(seed) + number + 1);
      this.count = 0;
      this.acts = 0;
      this.cuts = 0;
    }
    async connect() {
      this.db = await way.connect({ host, port: Number(port), user, password, database, connectTimeout: 300000 });
      this.fresh();
    }
    fresh() { this.variable = null; this.zone = 'SYSTEM'; this.div = 4; }
    tag() { this.count += 1; return `${this.name}-${this.count}`; }
    ask(sql, values) { return way.ask(this.db, sql, values); }
    same(what, got, want) {
      if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${this.name}: ${what}: got ${JSON.stringify(got)}, not ${JSON.stringify(want)}`);
    }
    async one(what, want, sql, values) { this.same(what, await this.ask(sql, values), [[want]]); }

    async see() {
      const tag = this.tag();
      const rows = await this.ask('SELECT ?, @v, @@time_zone, @@div_precision_increment, @@autocommit, DATABASE()', [tag]);
      this.same('state', rows, [[tag, this.variable, this.zone, this.div, 1, database]]);
    }
    async set() {
      const which = this.below(3);
      if (which === 0) { this.variable = this.below(1000); await this.ask(`SET @v = ${this.variable}`); }
      else if (which === 1) { this.zone = ZONES[this.below(3)]; await this.ask(`SET time_zone = '${this.zone}'`); }
      else { this.div = 1 + this.below(9); await this.ask(`SET SESSION div_precision_increment = ${this.div}`); }
    }
    async reset() { await way.reset(this.db); this.fresh(); await this.see(); }
    async insert() {
      const tag = this.tag();
      const id = way.id(await this.ask('INSERT INTO a(tag) VALUES (?)', [tag]));
      await this.one('LAST_INSERT_ID()', id, 'SELECT LAST_INSERT_ID()');
      await this.one('row', tag, 'SELECT tag FROM a WHERE id = ? /*master*/', [id]);
    }
    async transaction() {
      const tag = this.tag();
      await this.ask('BEGIN');
      await this.ask('INSERT INTO b(tag) VALUES (?)', [tag]);
      await this.one('own row', 1, 'SELECT COUNT(*) FROM b WHERE tag = ?', [tag]);
      const keep = this.below(2);
      await this.ask(keep ? 'COMMIT' : 'ROLLBACK');
      await this.one('row after it', keep, 'SELECT COUNT(*) FROM b WHERE tag = ? /*master*/', [tag]);
    }
    async temporary() {
      const tag = this.tag();
      await this.ask('CREATE TEMPORARY TABLE mine(tag VARCHAR(60))');
      await this.ask('INSERT INTO mine VALUES (?)', [tag]);
      await this.one('temporary table', tag, 'SELECT tag FROM mine');
      await this.ask('DROP TEMPORARY TABLE mine');
    }
    async error() {
      const tag = this.tag();
      const error = await this.ask(`SELECT \`${tag}\` FROM three`).then(() => null, (fault) => fault);
      this.same('error', [way.code(error), error.message.includes(tag)], [1054, true]);
      const rows = await this.ask('SHOW WARNINGS');
      this.same('warnings', rows.map((row) => [row[1], row[2].includes(tag)]), [[1054, true]]);
    }
    async prepared() {
      const tag = this.tag();
      this.same('prepared', await way.execute(this.db, 'SELECT CONCAT(?, ?)', [tag, '!']), [[`${tag}!`]]);
      const n = this.below(3) + 1;
      this.same('prepared', await way.execute(this.db, 'SELECT n FROM three WHERE n = ?', [n]), [[n]]);
    }
    async lock() {
      const which = this.below(3);
      if (which === 0) {
        await this.one('lock', 1, 'SELECT GET_LOCK(?, 60)', [this.name]);
        await this.one('unlock', 1, 'SELECT RELEASE_LOCK(?)', [this.name]);
      } else if (which === 1) {
        await this.ask('LOCK TABLES three READ');
        await this.one('locked table', 3, 'SELECT COUNT(*) FROM three');
        await this.ask('UNLOCK TABLES');
      } else {
        await this.ask('BEGIN');
        await this.one('locking read', 2, 'SELECT n FROM three WHERE n = 2 LOCK IN SHARE MODE');
        await this.ask('ROLLBACK');
      }
    }
    async follow() {
      const rows = 1 + this.below(3);
      this.same('rows', (await this.ask(`SELECT n FROM three LIMIT ${rows}`)).length, rows);
      await this.one('FOUND_ROWS()', rows, 'SELECT FOUND_ROWS()');
      await this.ask("UPDATE b SET tag = 'x' WHERE tag = 'nobody'");
      await this.one('ROW_COUNT()', 0, 'SELECT ROW_COUNT()');
    }
    // Ends anywhere, mostly without a word, and comes again.
    async cut() {
      const tag = this.tag();
      const where = this.below(5);
      if (where === 0) await way.end(this.db);
      if (where === 1) { this.ask('SELECT SLEEP(0.2) /*master*/').catch(() => {}); await pause(this.below(20)); }
      if (where === 2) { await this.ask('BEGIN'); await this.ask('INSERT INTO b(tag) VALUES (?)', [tag]); }
      if (where === 3) await this.one('lock', 1, 'SELECT GET_LOCK(?, 60)', [this.name]);
      if (where === 4) await this.ask('CREATE TEMPORARY TABLE mine(tag VARCHAR(60))');
      if (where > 0) way.destroy(this.db);
      await this.connect();
      if (where === 2) {
        // The server notices it a little later.
        const late = Date.now() + 60000;
        while ((await this.ask('SELECT COUNT(*) FROM b WHERE tag = ? /*master*/', [tag]))[0][0] !== 0) {
          this.same('time left for a rollback', Date.now() < late, true);
          await pause(50);
        }
      }
      if (where === 3) {
        await this.one('lock of one that has gone', 1, 'SELECT GET_LOCK(?, 60)', [this.name]);
        await this.one('unlock', 1, 'SELECT RELEASE_LOCK(?)', [this.name]);
      }
      this.cuts += 1;
      await this.see();
    }
    async run() {
      const acts = ['see', 'see', 'set', 'set', 'reset', 'insert', 'transaction', 'temporary', 'error', 'prepared', 'lock', 'follow', 'cut'];
      await this.connect();
      while (Date.now() < end && faults.length === 0) {
        const act = acts[this.below(acts.length)];
        await this[act]();
        this.acts += 1;
      }
      if (faults.length === 0) {
        await this.see();
        await way.end(this.db);
      }
    }
  }

  for (let number = 0; number < Number(clients); number += 1) all.push(new Client(number));
  await Promise.all(all.map((client) => client.run().catch((fault) => faults.push(`${client.name}: ${fault.stack}`))));
  for (const fault of faults.slice(0, 10)) console.error(fault);
  const sum = (what) => all.reduce((total, client) => total + client[what], 0);
  console.log(JSON.stringify({ clients: all.length, acts: sum('acts'), cuts: sum('cuts') }));
  process.exit(faults.length ? 1 : 0);
};
