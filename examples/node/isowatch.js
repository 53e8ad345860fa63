// Records what an application's transactions read and wrote, for Isowatch: an object of JSON a line.
//
//     const recorder = new Recorder('records.jsonl')
//     await recorder.transaction(client, async (t) => {     // a client of pg
//       t.read('account:1.n', n)                            // when the answer is there
//       t.write('account:1.n', n + 1)
//     })
//     await recorder.close()
//
// The application is never held up: a record that has no room is dropped. Its number in the session is used up, so
// that the monitor knows that something is missing.
'use strict'

const { open } = require('node:fs/promises')
const { hostname } = require('node:os')

// The time in nanoseconds, by a clock that is never set back. It is no number of JavaScript's, which would round it.
const epoch = BigInt(Date.now()) * 1_000_000n - process.hrtime.bigint()
const now = () => epoch + process.hrtime.bigint()

// Whether this answer to COMMIT says that nothing was committed. What is no answer, or another, says nothing.
const refused = (error) => /^(23|40(?!003))/.test(error.code ?? '')

class Recorder {
  dropped = 0
  #waiting = []
  #told = 0
  #writing = Promise.resolve()
  #idle = true
  #sessions = new WeakMap() // of clients
  #count = 0
  #name = `${hostname()}/${process.pid}/${now()}` // no other run's sessions are called so

  constructor(path, waitingMax = 10_000) {
    this.waitingMax = waitingMax
    this.file = open(path, 'a')
    this.file.catch(() => {}) // it is told by close
  }

  // Runs f between BEGIN and COMMIT, and records what it tells.
  async transaction(client, f) {
    if (!this.#sessions.has(client)) this.#sessions.set(client, this.#session())
    const t = this.#sessions.get(client).begin()
    let result
    try {
      await client.query('BEGIN')
      result = await f(t)
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {}) // without a connection the database does so by itself
      this.#put(t, 'aborted')
      throw error
    }
    try {
      const { command } = await client.query('COMMIT') // ROLLBACK after a statement that failed
      this.#put(t, command === 'COMMIT' ? 'committed' : 'aborted')
      return result
    } catch (error) {
      this.#put(t, refused(error) ? 'aborted' : 'unknown')
      if (!refused(error)) this.#sessions.delete(client)
      throw error
    }
  }

  // Writes what waits. It is called when no transaction is under way.
  async close() {
    this.#write()
    await this.#writing
    await (await this.file).close()
  }

  #session() {
    return new Session(`${this.#name}/${++this.#count}`)
  }

  #put(t, status) {
    if (this.#waiting.length >= this.waitingMax) this.dropped++
    else this.#waiting.push(t.line(status))
    this.#write()
  }

  #write() {
    if (!this.#idle) return
    this.#idle = false
    this.#writing = this.#drain().finally(() => (this.#idle = true))
  }

  async #drain() {
    const file = await this.file
    while (this.#waiting.length > 0 || this.dropped > this.#told) {
      const lines = this.#waiting.splice(0)
      const records = lines.length
      if (this.dropped > this.#told) {
        // Records are lost: a hole in a session shows only if another record follows.
        this.#told = this.dropped
        const lost = this.#session()
        const first = lost.begin()
        lost.begin()
        lines.unshift(first.line('aborted'), lost.begin().line('aborted'))
      }
      try {
        await file.appendFile(lines.join(''))
      } catch {
        this.dropped += Math.max(records, 1)
        return // until there is more to write
      }
    }
  }
}

// The transactions of one connection, one after the other. After an unknown outcome another one is begun.
class Session {
  #seq = 0

  constructor(name) {
    this.name = name
  }

  begin() {
    return new Transaction(this.name, this.#seq++)
  }
}

class Transaction {
  #start = now()
  #ops = []

  constructor(session, seq) {
    Object.assign(this, { session, seq })
  }

  // null is what a row that is not there has.
  read(key, value) {
    this.#ops.push(['r', key, value])
  }

  write(key, value) {
    this.#ops.push(['w', key, value])
  }

  line(status) {
    const { session, seq } = this
    const text = JSON.stringify({ session, seq, status, ops: this.#ops })
    return `${text.slice(0, -1)},"start":${this.#start},"end":${now()}}\n`
  }
}

module.exports = { Recorder }
