import {
  type RunState,
  ConfigurationError,
  LedgerDamagedError,
  LedgerUnavailableError,
  RunNotFoundError,
} from '@tallystick/core'
import type { TodoItem } from '@tallystick/core/internal'
import type { RunOutline } from '@tallystick/ledger'
import { sampleFacts, given, sampleCallId, sampleRunId } from '@tallystick/testkit'
import { InvalidArgumentError } from 'commander'
import { describe, expect, it } from 'vitest'
import { addLimit } from '../src/command/arguments.ts'
import { CommandError, chooseExitCode } from '../src/command/exit-code.ts'
import { formatFacts, type ShownRun } from '../src/view/run-facts.ts'

const runId = sampleRunId(1)
const callId = sampleCallId(runId)
const { run_started: started } = sampleFacts(runId)
const { parent: _parent, sessionId: _session, sessionPlace: _place, ...plain } = started
const begun = given([plain]).state as RunState

const outline: RunOutline = {
  agents: ['front'],
  ...{ children: [], requests: 0, results: 0, open: [], tools: [] },
}

/** The rows that are shown of a run, by their names. */
function rowsOf(more: Partial<ShownRun>, state: Partial<RunState> = {}): Readonly<Record<string, string>> {
  const shown: ShownRun = {
    ...{
      state: { ...begun, ...state } as RunState,
      maxSeq: 1,
      waitedMs: 0,
      outline,
      childRuns: [],
      inbox: [],
    },
    waits: { approvals: [], deferred: [], children: [] },
    statusView: { status: 'under_way', detail: 'in turn 0' },
    ...more,
  } as unknown as ShownRun
  const rows = formatFacts(shown).trimEnd().split('\n')
  return Object.fromEntries(rows.map((row) => [row.split(' ')[0] || 'more', row.replace(/^\S* +/, '')]))
}

describe('the facts of a run', () => {
  it('tell how long it took, and how long it waited', () => {
    const { startedAt } = begun
    const took = (ms: number, waitedMs = 0) => rowsOf({ waitedMs }, { at: startedAt + ms })['took']
    expect(took(65_000)).toBe('1 min 5 s')
    expect(took(65_000, 5_000)).toBe('1 min 5 s, of which it waited 5.0 s')
    expect(took(0)).toBe('0 ms')
  })

  it('tell what it used, with its child runs and its cost where there are any', () => {
    const { totals } = begun
    const used = (more: object) => rowsOf({}, { totals: { ...totals, ...more } })['used']
    const usage = { inputTokens: 20, outputTokens: 4 }
    expect(used({ turns: 1, toolCalls: 2, usage })).toBe('1 turn, 2 tool calls, 20 tokens in, 4 out')
    const children = { ...totals.children, runs: 1, turns: 2, toolCalls: 1 }
    expect(used({ turns: 0, toolCalls: 0, usage: {}, costUsd: 0.5, children })).toBe(
      '0 turns, 0 tool calls, 1 child run with 2 turns and 1 tool call, ? tokens in, ? out, $0.5000',
    )
  })

  it('tell the labels and the deadline that it was given', () => {
    expect(begun.deadlineAt).toBeUndefined()
    const labels = {
      workflowName: 'refunds',
      traceId: 't-1',
      groupId: 'g',
      tags: ['a', 'b'],
      metadata: { n: 1 },
    }
    const rows = rowsOf({}, { labels, deadlineAt: begun.startedAt })
    expect(rows['labels']).toBe('workflow refunds, trace t-1, group g, tags ["a","b"], {"n":1}')
    expect(rows['started']).toContain(rows['deadline'])
    expect(rowsOf({}, { labels: { groupId: 'g' } })['labels']).toBe('group g')
    expect(Object.keys(rowsOf({}, { labels: undefined } as object))).not.toContain('labels')
  })

  it('tell at which event it is shown, and its status today where that is another', () => {
    const rows = rowsOf({
      maxSeq: 9,
      now: { status: 'done', reason: 'answered' },
      outline: { ...outline, agents: ['front', 'expert'] },
    })
    expect(rows).toMatchObject({ phase: expect.stringMatching(/^idle, turn 0, event 1 of 9, writer 1$/) })
    expect(rows['now']).toBe('done: answered')
    expect(rows['agent']).toBe(`front → expert, model ${begun.definition.model.modelId}`)
    expect(rowsOf({})).not.toHaveProperty('now')
    expect(rowsOf({})).not.toHaveProperty('content')
    expect(rowsOf({}, { removedFrom: 7 })['content']).toBe('not all there, from event 7 on; verify says why')
  })

  it('tell of what it is a part', () => {
    expect(rowsOf({})).not.toHaveProperty('part')
    const parent = { runId: sampleRunId(2), seq: 4, relation: 'fork' as const }
    expect(rowsOf({}, { parent })['part']).toMatch(/^of +forked from run \S+ at event 4$/)
    const session = {
      sessionId: 'chat',
      sessionPlace: 2,
      parent: { ...parent, relation: 'session' as const },
    }
    expect(rowsOf({}, session)['part']).toMatch(/run 2 of session chat, continues run /)
  })

  it('tell what it and its child runs wait for', () => {
    const other = sampleRunId(3)
    const approval = { name: 'pay', toolCallId: callId, input: { usd: 5 } }
    const waits = (waitingRun: string) => ({
      approvals: [{ ...approval, runId: waitingRun }],
      ...{ deferred: [], children: [] },
    })
    expect(rowsOf({ waits: waits(runId) as never })['waiting']).toBe(`pay ${callId} {"usd":5}`)
    expect(rowsOf({ waits: waits(other) as never })['waiting']).toBe(
      `pay ${callId} {"usd":5}, in run ${other}`,
    )
    const deferred = [{ name: 'export', toolCallId: callId, input: {}, externalId: 'job-7', runId }]
    expect(rowsOf({ waits: { approvals: [], deferred, children: [] } })['waiting']).toBe(
      `export ${callId} continues outside as job-7`,
    )
  })

  it('tell of its child runs, and of commands that no process has taken up', () => {
    const childRuns = [{ runId: sampleRunId(3), agent: 'clerk', status: 'done' as const, reason: 'answered' }]
    expect(rowsOf({ childRuns })['child']).toBe(`${sampleRunId(3)} clerk, done: answered`)
    const inbox = (command: object) => rowsOf({ inbox: [{ command }] as never })['inbox']
    const end = ', for the process that drives the run next'
    expect(inbox({ type: 'approve', toolCallId: callId, by: 'ann' })).toBe(`approve ${callId} by ann${end}`)
    expect(inbox({ type: 'cancel' })).toBe(`cancel${end}`)
    expect(inbox({ type: 'cancel', by: undefined })).toBe(`cancel${end}`)
  })

  it('tell what is to be done, where the agent keeps a list', () => {
    const shown = (...items: readonly TodoItem[]) =>
      rowsOf({ outline: { ...outline, todo: { seq: 2, items } } })
    const read = { text: 'Read', state: 'open' } as const
    expect(shown(read)['to']).toMatch(/^do +0 of 1 done$/)
    expect(shown(read)['more']).toBe('[ ] Read')
    expect(shown({ ...read, state: 'done' }, { text: 'Send\n', state: 'under_way' })['to']).toMatch(
      /1 of 2 done$/,
    )
    expect(shown()).not.toHaveProperty('to')
    expect(rowsOf({})).not.toHaveProperty('to')
  })

  it('tell what calls there were, tool by tool', () => {
    const open = [{ toolCallId: callId, name: 'look', seq: 9 }]
    const tools = [
      { name: 'pay', calls: 1, endings: [{ ending: 'success', count: 1 } as const], inputs: [] },
      { name: 'look', calls: 1, endings: [], inputs: [] },
    ]
    const rows = rowsOf({ outline: { ...outline, requests: 2, results: 1, open, tools } })
    expect(rows['tally']).toBe(`2 requests, 1 result, 1 open (${callId})`)
    expect([rows['calls'], rows['more']]).toEqual(['pay; success', 'look; 1 open'])
  })
})

describe('a limit on the command line', () => {
  it('is put beside those before it', () => {
    expect(addLimit('maxTurns=5')).toEqual({ maxTurns: 5 })
    expect(addLimit('maxCostUsd=0.5', { maxTurns: 5 })).toEqual({ maxTurns: 5, maxCostUsd: 0.5 })
    expect(addLimit('maxTurns=0', { maxTurns: 5 })).toEqual({ maxTurns: 0 })
    for (const name of ['maxConcurrency', 'maxApprovalMs', 'graceMs', 'maxRepeats']) {
      expect(addLimit(`${name}=1e3`)).toEqual({ [name]: 1_000 })
    }
    for (const policy of ['finalize', 'stop', 'ask']) {
      expect(addLimit(`onLimit=${policy}`, { maxTurns: 1 })).toEqual({ maxTurns: 1, onLimit: policy })
    }
  })

  it.each([
    ['maxTurns', /^maxTurns has to be a number from 0|^Write name=value/],
    ['maxTurns=', /^maxTurns has to be a number from 0\.$/],
    ['maxTurns= ', /^maxTurns has to be a number from 0\.$/],
    ['maxTurns=-1', /^maxTurns has to be a number from 0\.$/],
    ['maxTurns=many', /^maxTurns has to be a number from 0\.$/],
    ['maxTurns=0x10', /^maxTurns has to be a number from 0\.$/],
    ['maxTurns=Infinity', /^maxTurns has to be a number from 0\.$/],
    ['turns=5', /^Write name=value, such as maxTurns=5, with one of maxTurns, .*, graceMs, onLimit\.$/],
    ['=5', /^Write name=value/],
    ['onLimit=go', /^onLimit is one of finalize, stop, ask\.$/],
    ['toString=1', /^Write name=value/],
  ])('is refused with what it may be: %s', (text, message) => {
    expect(() => addLimit(text)).toThrow(InvalidArgumentError)
    expect(() => addLimit(text)).toThrow(message)
  })
})

describe('an exit code', () => {
  it('says which kind of error ended a command', () => {
    const codes: readonly (readonly [unknown, number])[] = [
      [new CommandError('usage', 'x'), 2],
      [new CommandError('not_found', 'x'), 5],
      [new CommandError('refused', 'x'), 1],
      [new ConfigurationError('x'), 2],
      [new RunNotFoundError('r'), 5],
      [new LedgerDamagedError('x'), 4],
      [new LedgerUnavailableError('x'), 1],
      [new Error('x'), 1],
      [Object.assign(new Error('x'), { code: 'configuration' }), 1],
      [undefined, 1],
    ]
    expect(codes.map(([error]) => chooseExitCode(error))).toEqual(codes.map(([, code]) => code))
  })
})
