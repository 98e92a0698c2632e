import { sampleCallId, sampleRunId } from '@tallystick/testkit'
import type { RunSummary } from '@tallystick/ledger'
import { describe, expect, it } from 'vitest'
import { parseRunRow, type StoredRunRow, toRunRow } from '../src/projection/projections.ts'
import { RunAccumulator } from '../src/projection/run-accumulator.ts'
import { toUnreadableRecord, type SummaryRecord } from '../src/projection/run-summary.ts'

const runId = sampleRunId(1)
const place = { run_id: runId, pos: 7, head_hash: 'h'.repeat(43) }
const call = { toolCallId: sampleCallId(runId), name: 'look' }
const accumulated = new RunAccumulator().run
const summary: RunSummary = {
  ...{ runId, status: 'suspended', seq: 9, turn: 2, startedAt: 100, lastAt: 200 },
  ...{ agent: '"b"', agents: ['a', '"b"', 'a'], isStreaming: false, sessionId: '"s"', sessionPlace: 1 },
  parent: { runId: sampleRunId(2), seq: 3, relation: 'fork' },
  started: [call],
  waits: {
    approvals: [call],
    deferred: [{ ...call, externalId: 'job-7' }],
    children: [{ ...call, runId: sampleRunId(3) }],
    limit: { limit: 'maxTurns', max: 2 },
  },
  ...{ calls: [{ name: 'look', outcome: 'success', count: 1 }], lastCalls: [0], failedAttempts: 0 },
  ...{ childRunIds: [sampleRunId(3)], turns: 2, toolCalls: 1, usage: {} },
  children: { runs: 0, turns: 0, toolCalls: 0 },
}
const record: SummaryRecord = { summary, accumulated }

/** A row as the store gives it back. */
function row(of: SummaryRecord = record, change: Partial<StoredRunRow> = {}): StoredRunRow {
  return { ...toRunRow(place, of), ...change }
}

describe('the row of a run', () => {
  it('holds its summary, and what is looked for in columns', () => {
    expect(toRunRow(place, record)).toEqual({
      ...{ run_id: runId, pos: 7, seq: 9, head_hash: 'h'.repeat(43), status: 'suspended' },
      ...{
        agent: 'a',
        session_id: '"\\"s\\""',
        subject: null,
        is_child: 0,
        started_at: 100,
        last_at: 200,
        reason: null,
        cost_nano: null,
        tokens: 0,
        terms: JSON.stringify([
          ...['s suspended', 'a a', 'a "\\"b\\""', 't look', 'o success', 'c success look'],
        ]),
      },
      summary: JSON.stringify(summary),
      notes: JSON.stringify(accumulated),
    })
    expect(parseRunRow(row())).toStrictEqual({ pos: 7, summary, accumulated, spending: [] })
  })

  it('of a run that cannot be read holds no time, no agent and no note', () => {
    const unreadable = toUnreadableRecord(runId, 9, { code: 'ledger_damaged', message: 'It is damaged.' })
    const written = toRunRow(place, unreadable)
    expect(written).toMatchObject({ status: 'unreadable', session_id: null, started_at: 0, last_at: 0 })
    expect(written).toMatchObject({ notes: null, agent: '', terms: '["s unreadable"]' })
    expect(parseRunRow(row(unreadable))).toStrictEqual({
      ...{ pos: 7, spending: [] },
      summary: { runId, status: 'unreadable', seq: 9, code: 'ledger_damaged', message: 'It is damaged.' },
    })
  })
})

describe('a row that is not as it was written', () => {
  const other = { toolCallId: 'call_x', name: 'look' }
  const { waits } = summary
  it.each<readonly [string, object]>([
    ['that names another run', { runId: sampleRunId(9) }],
    ['with a started call under no id', { started: [call, other] }],
    ['with an approval under no id', { waits: { ...waits, approvals: [other] } }],
    ['with a deferred call under no id', { waits: { ...waits, deferred: [other] } }],
    ['with a child run of a call under no id', { waits: { ...waits, children: [{ ...other, runId }] } }],
    ['with a child run under no id', { waits: { ...waits, children: [{ ...call, runId: 'x' }] } }],
    ['with a worker under no id', { childRunIds: [sampleRunId(3), 'x'] }],
    ['with a parent under no id', { parent: { runId: 'x', seq: 1, relation: 'child' } }],
    ['with a limit that is none', { waits: { ...waits, limit: { limit: 'maxWishes' } } }],
    ['with calls that are no list', { calls: 3 }],
    ['without calls that were started', { started: undefined }],
  ])('%s counts as missing', (_how, change) => {
    const forged = JSON.stringify({ ...summary, ...change })
    expect(parseRunRow(row(record, { summary: forged }))).toBeUndefined()
  })

  it('counts as missing where it has no run id, or holds no JSON', () => {
    expect(parseRunRow(row(record, { run_id: 'nobody' }))).toBeUndefined()
    expect(parseRunRow(row(record, { notes: '{' }))).toBeUndefined()
    expect(parseRunRow({ ...row(), summary: null })).toBeUndefined()
  })

  it('counts as missing where what its run spent cannot be summed up', () => {
    const model = { provider: 'p', api: 'a', modelId: 'm' }
    const open = { key: '1 1', turn: 1, agent: 'looker', model, at: 100, usage: { inputTokens: 1 } }
    const line = { hour: 5, agent: 'looker', model, calls: 1, usage: {}, costNano: 1, unpriced: 0 }
    const without = (field: string, of: object): object =>
      Object.fromEntries(Object.entries(of).filter(([name]) => name !== field))
    const read = (notes: object) =>
      parseRunRow(row(record, { notes: JSON.stringify({ ...accumulated, ...notes }) }))
    const sound = { open: [open], settled: [line] }
    expect(read(sound)).toMatchObject({ accumulated: sound, spending: [line, { hour: 0, calls: 1 }] })
    for (const field of ['agent', 'model', 'at'])
      expect(read({ open: [without(field, open)] })).toBeUndefined()
    for (const field of Object.keys(line)) expect(read({ settled: [without(field, line)] })).toBeUndefined()
    for (const field of Object.keys(model))
      expect(read({ settled: [{ ...line, model: without(field, model) }] })).toBeUndefined()
    for (const change of [{ open: {} }, { settled: null }, { settled: {} }, { settled: [null] }])
      expect(read(change)).toBeUndefined()
  })

  it('is one that names no parent and no limit', () => {
    const { parent: _parent, ...alone } = summary
    const { limit: _limit, ...unlimited } = waits
    const plain = { ...alone, waits: unlimited }
    expect(parseRunRow(row(record, { summary: JSON.stringify(plain) }))?.summary).toEqual(plain)
    const other = { runId: sampleRunId(9), status: 'unreadable', seq: 9, code: 'x', message: 'x' }
    expect(parseRunRow(row(record, { summary: JSON.stringify(other) }))).toBeUndefined()
  })
})
