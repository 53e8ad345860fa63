// An application that adds to accounts: node shop.js ADDRESS RECORDS CLIENTS TRANSACTIONS
'use strict'

const { setTimeout } = require('node:timers/promises')
const { Client } = require('pg')
const { Recorder } = require('./isowatch')

const [address, records, clients, transactions] = process.argv.slice(2)
const recorder = new Recorder(records)

async function connected(f) {
  const client = new Client({ connectionString: address })
  client.on('error', () => {}) // whoever waits for an answer is told
  await client.connect()
  await f(client)
  await client.end()
}

const add = (client, account) =>
  recorder.transaction(client, async (t) => {
    const key = `account:${account}.n`
    const { rows } = await client.query({ name: 'get', text: 'select n from account where id = $1', values: [account] })
    t.read(key, rows[0].n)
    await setTimeout(2) // the application thinks
    await client.query('update account set n = $1 where id = $2', [rows[0].n + 1, account])
    t.write(key, rows[0].n + 1)
  })

async function work(client, number) {
  for (let done = 0; done < transactions; ) {
    try {
      await add(client, (number + done) % 2)
      done++
    } catch (error) {
      if (error.code !== '40001') throw error // else again
    }
  }
}

async function main() {
  await connected(async (client) => {
    await client.query('create table account (id int primary key, n int)')
    await recorder.transaction(client, async (t) => {
      for (const account of [0, 1]) {
        await client.query('insert into account values ($1, 0)', [account])
        t.write(`account:${account}.n`, 0)
      }
    })
  })
  await Promise.all(Array.from({ length: clients }, (_, number) => connected((client) => work(client, number))))
}

main().finally(() => recorder.close())
