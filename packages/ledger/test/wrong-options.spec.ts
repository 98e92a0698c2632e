// What is given in plain JavaScript, where no compiler looks.
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ConfigurationError, memoryLedger } from '@tallystick/core'
import { sampleRunId } from '@tallystick/testkit'
import {
  applyRetention,
  fitsFilter,
  foldTo,
  importEvents,
  readLedgerStats,
  rebuildProjections,
  redact,
  readRunSummaries,
  verifyCheckpoints,
  writeCheckpoint,
} from '@tallystick/ledger'
import { exportRegression, replayRegression, replayRun } from '@tallystick/replay'
import { checkContract } from '@tallystick/ledger/contract'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { lastingFolder } from '../../../scripts/testing/temporary-folder.ts'

const folder = lastingFolder()

const sqlite = (options: unknown) => () => sqliteLedger(join(folder, 'runs.db'), options as never)
const postgres = (options: unknown) => () => postgresLedger(options as never)
const keyOf = () => Promise.reject(new Error('not asked'))
const pool = { connect: () => {}, options: {} }
const connectionString = 'postgres://me@localhost/runs'

it.each<readonly [string, () => unknown, string]>([
  ['a slip', sqlite({ readonly: true }), 'sqliteLedger: readonly is not an option. Did you mean readOnly?'],
  ['a wait by half its name', sqlite({ busyTimeout: 5 }), 'Did you mean busyTimeoutMs?'],
  ['a wait longer than SQLite counts', sqlite({ busyTimeoutMs: 2 ** 31 }), 'from 0 to 2147483647'],
  ['a wait that is over', sqlite({ busyTimeoutMs: -1 }), 'busyTimeoutMs is -1; expected'],
  ['half a millisecond', sqlite({ busyTimeoutMs: 0.5 }), 'busyTimeoutMs is 0.5; expected'],
  ['a log of no bytes', sqlite({ maxWalBytes: 0 }), 'maxWalBytes is 0; expected'],
  ['keys that are not keys', sqlite({ keys: 'keys.db' }), 'keys is a text; expected a keyring'],
  ['keys that cannot be destroyed', sqlite({ keys: { keyOf, key: keyOf } }), 'expected a keyring'],
  ['keys that cannot be made', sqlite({ keys: { key: keyOf, destroy: keyOf } }), 'expected a keyring'],
  ['keys that cannot be read', sqlite({ keys: { keyOf, key: 'k1', destroy: keyOf } }), 'expected a keyring'],
  ['pieces that wait for more than a second', sqlite({ deltaDelayMs: 1_001 }), 'from 0 to 1000'],
  ['pieces that have waited', sqlite({ deltaDelayMs: -1 }), 'deltaDelayMs is -1; expected'],
  ['pieces that wait for half a millisecond', sqlite({ deltaDelayMs: 0.5 }), 'deltaDelayMs is 0.5; expected'],
  ['a text as a delay', sqlite({ deltaDelayMs: '5' }), 'deltaDelayMs is a text; expected'],
  ['half a byte', sqlite({ maxWalBytes: 0.5 }), 'maxWalBytes is 0.5; expected a whole number'],
  ['yes for true', sqlite({ readOnly: 'yes' }), "readOnly is a text, 'yes'; expected true or false"],
  ['neither a string nor a pool', postgres({}), 'needs a connectionString'],
  ['a pool that is none', postgres({ pool: {} }), 'a pool of pg'],
  ['a pool and a string', postgres({ pool, connectionString }), 'a pool and connectionString'],
  ['a size of a pool that is there', postgres({ pool, maxConnections: 5 }), 'a pool and maxConnections'],
  ['a string for options', postgres(connectionString), 'what it was given is a text; expected an object'],
  ['too many connections', postgres({ connectionString, maxConnections: 1e6 }), 'from 1 to 10000'],
])('a store refuses %s, and says nothing of its password', (_name, open, message) => {
  expect(open).toThrow(ConfigurationError)
  expect(open).toThrow(message)
})

it('a store takes the longest wait that SQLite counts, and the smallest log', async () => {
  const longest = { busyTimeoutMs: 2 ** 31 - 1, maxWalBytes: 1 }
  const store = sqliteLedger(join(folder, 'longest.db'), longest)
  await expect(store.head(sampleRunId(1))).resolves.toBeUndefined()
  await store.close()
})

it.each([
  [undefined, 20],
  [0, 0],
  [1_000, 1_000],
])('a store given a delay of %s lets pieces of a reply wait for %i ms', async (given, deltaDelayMs) => {
  const store = sqliteLedger(
    join(folder, `delay-${given}.db`),
    given === undefined ? {} : { deltaDelayMs: given },
  )
  expect(store.deltaDelayMs).toBe(deltaDelayMs)
  await store.close()
})

it.each<readonly [string, () => Promise<unknown>, string]>([
  ['a class of content by half its name', () => retain({ deltaMs: 5 }), 'deltaMs is not an option'],
  ['an age before now', () => retain({ contentMs: -1 }), 'milliseconds from 0'],
  [
    'yes for true',
    () => retain({ contentMs: 1 }, { dryRun: 'yes' }),
    "dryRun is a text, 'yes'; expected true or false",
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

const ledger = memoryLedger()
const runId = sampleRunId(1)
const file = join(folder, 'checkpoints')
const publicKey = 'a key'
const agents = { from: './agents.ts' }
const test = join(folder, 'refund.spec.ts')
const by = { by: 'ada', reason: 'asked for' }
const week = { since: 0, maxListed: 5 }

const sign = (options: unknown) => writeCheckpoint(ledger, options as never)
const compare = (options: unknown) => verifyCheckpoints(ledger, options as never)
const read = (lines: unknown, options?: unknown) => importEvents(ledger, lines as never, options as never)
const fold = (options: unknown) => foldTo(ledger, runId, 1, options as never)
const write = (options: unknown) => exportRegression(ledger, runId, options as never)
const drive = (fixture: unknown, given: unknown, options?: unknown) =>
  replayRegression(fixture as never, given as never, options as never)
const take = (seqs: unknown, options: unknown) => redact(ledger, runId, seqs as never, options as never)
const count = (query: unknown, options?: unknown) => readLedgerStats(ledger, query as never, options as never)
const tell = (filter: unknown, options?: unknown) =>
  Array.fromAsync(readRunSummaries(ledger, filter as never, options as never))
const fit = async (filter: unknown) => fitsFilter({ status: 'done' } as never, filter as never)
const rebuild = (received: unknown) => rebuildProjections(ledger, received as never)
const judge = (make: unknown, options?: unknown) =>
  Array.fromAsync(checkContract(make as never, options as never))

it.each<readonly [string, () => Promise<unknown>, string]>([
  [
    'a key to sign with by another name',
    () => sign({ file, privateKey: 'k', origin: 'o' }),
    'writeCheckpoint: privateKey is not an option. Did you mean key?',
  ],
  ['nothing to sign with', () => sign(undefined), 'writeCheckpoint: what it was given is missing'],
  ['a key that is a number', () => sign({ file, key: 5, origin: 'o' }), 'key is 5; expected an Ed25519 key'],
  ['no file to sign into', () => sign({ file: '', key: 'k', origin: 'o' }), 'file is an empty text'],
  [
    'a list for an origin',
    () => sign({ file, key: 'k', origin: ['o'] }),
    'origin is a list; expected a text',
  ],
  [
    'a public key by half its name',
    () => compare({ file, key: publicKey }),
    'verifyCheckpoints: key is not an option. Did you mean publicKey?',
  ],
  ['an origin by a slip', () => compare({ file, publicKey, orgin: 'o' }), 'Did you mean origin?'],
  ['a key that is null', () => compare({ file, publicKey: null }), 'publicKey is null; expected'],
  ['a listener by another case', () => read([], { onrun: () => {} }), 'Did you mean onRun?'],
  ['a listener that is not a function', () => read([], { onRun: 'log' }), 'importEvents: onRun is a text'],
  ['a path for lines', () => read('runs.jsonl'), 'the second argument is a text; expected lines'],
  ['bytes for lines', () => read(Buffer.from('{}')), 'expected lines, such as splitLines'],
  ['snapshots by a slip', () => fold({ snapshot: false }), 'foldTo: snapshot is not an option. Did you mean'],
  ['no for false', () => fold({ snapshots: 'no' }), "snapshots is a text, 'no'; expected true or false"],
  ['null for options', () => fold(null), 'foldTo: what it was given is null'],
  ['a test without agents', () => write({ file: test }), 'exportRegression: agents is missing'],
  ['agents by a path alone', () => write({ file: test, agents: './a.ts' }), 'agents is a text'],
  [
    'agents by another word',
    () => write({ file: test, agents: { form: './a.ts' } }),
    'agents.form is not an option. Did you mean agents.from?',
  ],
  ['a secret as text', () => write({ file: test, agents, secrets: ['x'] }), 'secrets[0] is a text'],
  ['one secret for a list', () => write({ file: test, agents, secret: /x/ }), 'Did you mean secrets?'],
  ['a test of a third kind', () => write({ file: test, agents, definitions: 'both' }), "is 'both'"],
  ['a fixture that is not one', () => drive(5, []), 'replayRegression: the fixture is 5'],
  ['no agents to drive', () => drive('a.jsonl', undefined), 'the second argument is missing'],
  ['a pattern as text', () => drive('a.jsonl', [], { secrets: ['x'] }), 'secrets[0] is a text'],
  ['definitions by half', () => drive('a.jsonl', [], { definition: 'today' }), 'Did you mean definitions?'],
  ['a redaction by no one', () => take([1], { reason: 'x' }), 'redact: by is missing'],
  ['a redaction without words', () => take([1], undefined), 'redact: what it was given is missing'],
  ['a reason by a slip', () => take([1], { by: 'ada', raeson: 'x' }), 'Did you mean reason?'],
  ['a date for a time', () => take([1], { ...by, at: new Date(0) }), 'at is a Date'],
  ['one number for a list', () => take(1, by), 'the third argument is 1; expected a list of event numbers'],
  ['stats from nowhere', () => count({ maxListed: 5 }), 'readLedgerStats: since is missing'],
  ['stats from no number', () => count({ since: Number.NaN, maxListed: 5 }), 'since is NaN'],
  ['half a run', () => count({ since: 0, maxListed: 0.5 }), 'maxListed is 0.5; expected a whole number'],
  ['a count by another name', () => count({ since: 0, limit: 5 }), 'Did you mean maxListed?'],
  ['a refresh by a slip', () => count(week, { refesh: false }), 'Did you mean refresh?'],
  ['a refresh that is not one', () => count(week, { refresh: 0 }), 'refresh is 0; expected true or false'],
  [
    'a status alone',
    () => tell({ status: 'done' }),
    'readRunSummaries: status is not an option. Did you mean',
  ],
  ['a status that is not one', () => tell({ statuses: ['finished'] }), "statuses[0] is 'finished'"],
  ['an outcome that is not one', () => tell({ outcome: 'succes' }), "Did you mean 'success'?"],
  ['less than no run', () => tell({ limit: -1 }), 'limit is -1; expected a whole number'],
  ['a day as text', () => tell({ since: '2026-01-01' }), 'since is a text'],
  ['a session by half its name', () => tell({ session: 's' }), 'Did you mean sessionId?'],
  [
    'progress that is not a function',
    () => tell({}, { onProgress: true }),
    'onProgress is true; expected a function',
  ],
  [
    'a filter of one run',
    () => fit({ agents: 'ada' }),
    'fitsFilter: agents is not an option. Did you mean agent?',
  ],
  ['a listener of a rebuild', () => rebuild({ onProgress: () => {} }), 'what gets the progress is an object'],
  ['a store for its maker', () => judge(ledger), 'checkContract: the first argument is an object'],
  ['a time limit by another name', () => judge(() => ledger, { limitMS: 5 }), 'Did you mean limitMs?'],
  ['a time limit of nothing', () => judge(() => ledger, { limitMs: 0 }), 'limitMs is 0'],
])('a public function refuses %s', async (_name, act, message) => {
  await expect(act()).rejects.toThrow(ConfigurationError)
  await expect(act()).rejects.toThrow(message)
})
