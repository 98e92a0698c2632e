// What is given in place of a ledger, a path, a run or a state, where no compiler looks.
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ConfigurationError, createRuntime, memoryLedger } from '@tallystick/core'
import { sampleRunId } from '@tallystick/testkit'
import { emptyLedgerFile } from './support/temporary-folder.ts'
import {
  applyRetention,
  countEventsToFold,
  exportEvents,
  toExportLine,
  importEvents,
  readLedgerStats,
  splitLines,
  rebuildProjections,
  redact,
  readRunSummaries,
  verifyCheckpoints,
  writeCheckpoint,
  readFirstInputs,
  foldTo,
  countProjectionLag,
  rebuildRequest,
  readRunSummary,
  verifyLedger,
  verifyRun,
  watch,
  watchLedger,
} from '@tallystick/ledger'
import { sqliteKeyring, sqliteLedger } from '@tallystick/ledger/sqlite'

const ledger = memoryLedger()
const nothing = undefined as never
const why = { by: 'ada', reason: 'asked' }
const head = { expectedSeq: 0, epoch: 1 }
const lazy = { durability: 'lazy' } as const
const runtime = createRuntime({ ledger })
const runId = sampleRunId(1)

const opened = (path: unknown) => () => sqliteLedger(path as never)
const exported =
  (id: unknown, from: unknown = ledger) =>
  () =>
    Array.fromAsync(exportEvents(from as never, id as never))
const folded = (seq: unknown) => () => foldTo(ledger, runId, seq as never)
const settled = (id: unknown, call?: unknown, result?: unknown) => () =>
  runtime.settle(id as never, call as never, result as never)

it.each<readonly [string, () => unknown, string]>([
  ['no path', opened(undefined), 'sqliteLedger needs the path of a file'],
  ['null for a path', opened(null), 'Name a file'],
  ['a number for a path', opened(5), 'Name a file'],
  ['options for a path', opened({}), 'Name a file'],
  ['a URL for a path', opened(new URL('file:///runs.db')), 'Pass fileURLToPath(url)'],
  ['a Postgres address for a path', opened('postgres://me@localhost/runs'), 'Use postgresLedger('],
  ['the longer name of it', opened(' PostgreSQL://me@localhost/runs'), 'Use postgresLedger('],
  ['a URL of SQLite for a path', opened('file:runs.db'), "Pass the path alone, as in 'runs.db'"],
  ['no path of keys', () => sqliteKeyring(undefined as never), 'sqliteKeyring needs the path of a file'],
  ['an object for a run', () => verifyRun(ledger, {} as never), 'verifyRun: the run id is an object'],
  ['a number to export', exported(5), 'exportEvents: the run id is 5'],
  ['null to export', exported(null), 'exportEvents: the run id is null'],
  ['a fold to null', folded(null), 'foldTo: seq is null; expected a whole number'],
  ['a fold to a text', folded('5'), 'foldTo: seq is a text'],
  ['a request of a ledger', () => rebuildRequest(ledger as never), 'expected the state of a run'],
  ['an object to resume', () => runtime.resume({} as never), 'resume: the run id is an object'],
  ['no run of which it is', () => redact(ledger, nothing, 'all', why), 'redact: the run id is missing'],
  [
    'a run in place of a list',
    () => readFirstInputs(ledger, runId as never),
    'readFirstInputs: the list of run ids is a text',
  ],
  ['no event to export', () => toExportLine({} as never), 'an event, such as ledger.read yields'],
  [
    'other histories',
    () => Array.fromAsync(exportEvents(ledger, runId, {} as never)),
    'new ExportedHistories()',
  ],
  [
    'a path for bytes',
    () => Array.fromAsync(splitLines('runs.jsonl' as never)),
    'such as createReadStream(path)',
  ],
  [
    'an append after nothing',
    () => ledger.append(runId, nothing, [], lazy),
    'ledger.append: the head is missing',
  ],
  [
    'an append of nothing',
    () => ledger.append(runId, head, nothing, lazy),
    'ledger.append: the list of events is missing',
  ],
  ['a list of nothing', () => ledger.append(runId, head, [null] as never, lazy), 'expected a list of events'],
  ['no entry of an inbox', () => ledger.put(runId, nothing), 'ledger.put: the entry is missing'],
  ['half an entry', () => ledger.put(runId, { key: 'k' } as never), "command: { type: 'cancel' }"],
  ['a settling of no call', settled(runId), 'settle: the tool call id is missing'],
  ['a settling without a result', settled(runId, 'x'), 'settle: the result is missing'],
  ['a number for a result', settled(runId, 'x', 5), 'the result is 5; expected a text, a list of parts'],
  [
    'what a program returned for a result',
    settled(runId, 'x', { paid: true }),
    'the result is an object; expected a text, a list of parts, or { failed: text }',
  ],
  ['a result of a slip', settled(runId, 'x', { faild: 'x' }), 'or { failed: text }'],
])('refuses %s', async (_name, act, message) => {
  const refusal = (async () => await act())()
  await expect(refusal).rejects.toThrow(ConfigurationError)
  await expect(refusal).rejects.toThrow(message)
})

const takers: Readonly<Record<string, (...given: never[]) => unknown>> = {
  ...{
    applyRetention,
    countEventsToFold,
    countProjectionLag,
    exportEvents,
    foldTo,
    importEvents,
    readFirstInputs,
  },
  ...{
    readLedgerStats,
    readRunSummaries,
    readRunSummary,
    rebuildProjections,
    redact,
    verifyCheckpoints,
    verifyLedger,
  },
  ...{ verifyRun, watch, watchLedger, writeCheckpoint },
}

it.each(Object.entries(takers))('%s names what it was given in the place of a ledger', async (name, take) => {
  for (const [given, what] of [
    ['runs.db', 'a text; expected a ledger, such as sqliteLedger(path)'],
    [undefined, 'missing'],
    [null, 'null'],
    [5, '5'],
    [{}, 'an object'],
  ] as const) {
    const refusal = (async () => {
      const taken = take(given as never)
      return Symbol.asyncIterator in Object(taken)
        ? await Array.fromAsync(taken as AsyncIterable<unknown>)
        : await taken
    })()
    await expect(refusal).rejects.toThrow(ConfigurationError)
    await expect(refusal).rejects.toThrow(`${name}: the ledger is ${what}`)
  }
})

it('refuses what is not an append or put of a file, as in memory', async () => {
  const file = sqliteLedger(emptyLedgerFile())
  await expect(file.append(runId, nothing, [], lazy)).rejects.toThrow('ledger.append: the head is missing')
  await expect(file.append(runId, head, nothing, lazy)).rejects.toThrow(
    'ledger.append: the list of events is missing',
  )
  await expect(file.put(runId, nothing)).rejects.toThrow('ledger.put: the entry is missing')
  await file.close()
})

it('opens a file whose name only looks like an address', async () => {
  await expect((async () => sqliteLedger(join('missing-folder', 'postgres:runs.db')))()).rejects.toThrow(
    'The folder',
  )
})
