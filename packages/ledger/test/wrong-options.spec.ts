// What is given in plain JavaScript, where no compiler looks.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { ConfigurationError, memoryLedger } from '@tallystick/core'
import { sampleRunId } from '@tallystick/core/testing'
import { applyRetention, replayRun } from '@tallystick/ledger'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { sqliteLedger } from '@tallystick/ledger/sqlite'

const folder = mkdtempSync(join(tmpdir(), 'wrong-options-'))
afterAll(() => rmSync(folder, { recursive: true }))

const sqlite = (options: unknown) => () => sqliteLedger(join(folder, 'runs.db'), options as never)
const postgres = (options: unknown) => () => postgresLedger(options as never)
const connectionString = 'postgres://me@localhost/runs'

it.each<readonly [string, () => unknown, string]>([
  ['a slip', sqlite({ readonly: true }), 'sqliteLedger: readonly is no option. Did you mean readOnly?'],
  ['a wait by half its name', sqlite({ busyTimeout: 5 }), 'Did you mean busyTimeoutMs?'],
  ['keys that are none', sqlite({ keys: 'keys.db' }), 'keys is a text; expected a keyring'],
  ['half a byte', sqlite({ walBytesMax: 0.5 }), 'walBytesMax is 0.5; expected a whole number'],
  ['yes for true', sqlite({ oneWriter: 'yes' }), 'oneWriter is a text; expected true or false'],
  ['a connection by another name', postgres({ url: connectionString }), 'Did you mean connectionString?'],
  ['a string for options', postgres(connectionString), 'what it was given is a text; expected an object'],
  ['a size by another name', postgres({ connectionString, max: 5 }), 'Did you mean connectionsMax?'],
  ['too many connections', postgres({ connectionString, connectionsMax: 1e6 }), 'from 1 to 10000'],
])('a store refuses %s, and says nothing of its password', (_name, open, message) => {
  expect(open).toThrow(ConfigurationError)
  expect(open).toThrow(message)
})

it.each<readonly [string, () => Promise<unknown>, string]>([
  ['a class of content by half its name', () => retain({ deltaMs: 5 }), 'deltaMs is no option'],
  ['an age before now', () => retain({ contentMs: -1 }), 'milliseconds from 0'],
  [
    'yes for true',
    () => retain({ contentMs: 1 }, { dryRun: 'yes' }),
    'dryRun is a text; expected true or false',
  ],
  ['a replay by other words', () => replay({ definition: 'recorded' }), 'Did you mean definitions?'],
  ['a replay of a third kind', () => replay({ definitions: 'both' }), "definitions is 'both'"],
])('what is done with a ledger refuses %s', async (_name, act, message) => {
  await expect(act()).rejects.toThrow(ConfigurationError)
  await expect(act()).rejects.toThrow(message)
})

const retain = (ages: unknown, options: unknown = {}) =>
  applyRetention(memoryLedger(), ages as never, options as never)
const replay = (options: unknown) =>
  replayRun(memoryLedger(), sampleRunId(1), () => undefined as never, options as never)
