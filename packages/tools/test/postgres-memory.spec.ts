import { ConfigurationError } from '@tallystick/core'
import { type MemoryStore, postgresMemory } from '@tallystick/tools/memory'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { storePromises } from './built-in/memory/store-promises.ts'

const server = inject('postgres')
const admin = 'connectionString' in server ? server.connectionString : ''
const database = `memory_${process.pid}`
const url = (): string => Object.assign(new URL(admin), { pathname: database }).href

async function asAdmin(text: string): Promise<void> {
  const client = new Client({ connectionString: admin })
  await client.connect()
  await client.query(text)
  await client.end()
}

// Needs a server. Where this machine has none, the test run says why.
describe.skipIf(admin === '')('postgresMemory', () => {
  let store: MemoryStore
  beforeAll(async () => {
    await asAdmin(`create database ${database}`)
    store = postgresMemory({ connectionString: url() })
  })
  afterAll(async () => {
    await store.close()
    await asAdmin(`drop database ${database} with (force)`)
  })
  storePromises(() => store)

  it('makes its tables once, where several processes begin at the same time', async () => {
    const stores = Array.from({ length: 3 }, () =>
      postgresMemory({ connectionString: url(), maxConnections: 1 }),
    )
    const owner = { owner: 'subject:several' }
    const saved = await Promise.all(
      stores.map((one, at) => one.save(owner, { key: String(at), text: 'tent', at, max: 9 })),
    )
    expect(saved.map((memory) => (memory === 'full' ? 0 : memory.id)).toSorted((a, b) => a - b)).toEqual([
      1, 2, 3,
    ])
    await Promise.all(stores.map((one) => one.close()))
  })

  it('connects anew after a failure, and after a connection is lost', async () => {
    const later = `later_${process.pid}`
    const there = Object.assign(new URL(admin), { pathname: later }).href
    const one = postgresMemory({ connectionString: there })
    const owner = { owner: 'subject:ann' }
    await expect(one.list(owner, 1)).rejects.toThrow('does not exist')
    await asAdmin(`create database ${later}`)
    expect(await one.list(owner, 1)).toEqual([])
    await one.close()
    await one.close()
    await asAdmin(`drop database ${later} with (force)`)
  })
})

describe('the options of postgresMemory', () => {
  it.each([
    [{ connectionString: 'postgres//a:hunter2@b' }, 'connectionString cannot be read'],
    [{ connectionString: 'http://a:hunter2@b/c' }, 'connectionString cannot be read'],
    [{ connectionString: '' }, 'connectionString'],
    [{ connectionString: 'postgres://a/b', maxConnections: 0 }, 'maxConnections'],
    [{ connectionString: 'postgres://a/b', timeoutMs: 0 }, 'timeoutMs'],
  ])('refuses %o, without its password', (options, message) => {
    const made = (): MemoryStore => postgresMemory(options)
    expect(made).toThrow(ConfigurationError)
    expect(made).toThrow(message)
    expect(made).not.toThrow('hunter2')
  })
})
