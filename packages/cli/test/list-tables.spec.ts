import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunId } from '@tallystick/core'
import type { Outcome } from '@tallystick/core/vocabulary'
import type { DaySpending, RunSummary, SessionTotals } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { sampleRunId, sampleFacts, sampleMessage, stampFacts } from '@tallystick/testkit'
import { describe, expect, it, afterAll, beforeAll } from 'vitest'
import {
  formatCount,
  formatDuration,
  formatShortDuration,
  formatSpent,
  formatTally,
  formatTime,
  formatUsage,
} from '../src/command/text.ts'
import type { RunStatusView } from '../src/runs/run-status.ts'
import {
  groupByAgentAndModel,
  sortByDay,
  formatDays,
  formatSessions,
  formatSpending,
} from '../src/verbs/stats.ts'
import { type ListedRunRow, RunTable, formatWorst } from '../src/view/run-table.ts'
import { openShop } from './kit/shop.ts'
import { json, tallystickHere, tallystickRead } from './kit/tallystick.ts'

/** Text in lines, as it is written here. */
const lines = (...text: readonly string[]): string => text.map((line) => `${line}\n`).join('')

const model = (modelId: string) => ({ provider: 'p', api: 'a', modelId })
const spent = (agent: string, modelId: string, more: Partial<DaySpending>): DaySpending => ({
  ...{ day: 0, agent, model: model(modelId), calls: 1, usage: {}, unpriced: 0 },
  ...more,
})

describe('what agents took of models', () => {
  const spending = [
    spent('cheap', 'm', { usage: { inputTokens: 5 }, unpriced: 1 }),
    spent('dear', 'm', { day: 1, calls: 2, usage: { inputTokens: 10, outputTokens: 3 }, costUsd: 0.5 }),
    spent('dear', 'm', { usage: { inputTokens: 1, outputTokens: 1 }, costUsd: 0.25, unpriced: 2 }),
    spent('dear', 'n', { usage: { outputTokens: 9 } }),
    spent('busy', 'm', { calls: 3, usage: { inputTokens: 5 } }),
    spent('also', 'm', { usage: { inputTokens: 5 } }),
  ]

  it('is one row for each, the dearest first, then by tokens, calls and names, and the sum of all', () => {
    expect(formatSpending(groupByAgentAndModel(spending))).toBe(
      lines(
        'AGENT  MODEL  CALLS  TOKENS IN  TOKENS OUT  COST',
        'dear   p m    3      11         4           $0.7500 and 2 calls without a price',
        'dear   p n    1      0          9           ',
        'busy   p m    3      5          0           ',
        'also   p m    1      5          0           ',
        'cheap  p m    1      5          0           1 call without a price',
        'all           9      26         13          $0.7500 and 3 calls without a price',
      ),
    )
  })

  it('is a row for each day, the last day first', () => {
    expect(formatDays(sortByDay(spending.slice(0, 3)))).toBe(
      lines(
        'DAY         AGENT  MODEL  CALLS  TOKENS IN  TOKENS OUT  COST',
        '1970-01-02  dear   p m    2      10         3           $0.5000',
        '1970-01-01  cheap  p m    1      5          0           1 call without a price',
        '1970-01-01  dear   p m    1      1          1           $0.2500 and 2 calls without a price',
      ),
    )
  })

  it('is a row for each session', () => {
    const session: SessionTotals = {
      ...{ sessionId: 'chat', runs: 2, startedAt: 0, lastAt: 1_000, turns: 3, toolCalls: 4 },
      ...{ usage: { inputTokens: 5, outputTokens: 6 }, costUsd: 0.0125, unpriced: 0 },
    }
    const { costUsd: _, ...free } = { ...session, sessionId: 'x', usage: {} }
    expect(formatSessions([session, free])).toBe(
      lines(
        'SESSION  RUNS  TURNS  CALLS  TOKENS IN  TOKENS OUT  LAST EVENT                COST',
        'chat     2     3      4      5          6           1970-01-01T00:00:01.000Z  $0.0125',
        'x        2     3      4      0          0           1970-01-01T00:00:01.000Z  ',
      ),
    )
  })

  it('is nothing without rows', () => {
    expect([formatSpending([]), formatDays([]), formatSessions([])]).toEqual(['', '', ''])
  })
})

const runId = sampleRunId(1)
const start = Date.UTC(2026, 5, 30, 12, 34)
const summary = (more: Partial<RunSummary> = {}): RunSummary => ({
  ...{ runId, status: 'done', seq: 9, turn: 1, startedAt: start, lastAt: start + 65_000, agent: 'host' },
  ...{
    agents: ['host'],
    isStreaming: false,
    started: [],
    waits: { approvals: [], deferred: [], children: [] },
  },
  ...{ calls: [], lastCalls: [], failedAttempts: 0, childRunIds: [], turns: 2, toolCalls: 3 },
  ...{ children: { turns: 0, toolCalls: 0 } as RunSummary['children'] },
  ...{ usage: { inputTokens: 10, outputTokens: 5 }, costUsd: 0.5 },
  ...(more as object),
})
const row = (
  more: Partial<RunSummary> = {},
  statusView: RunStatusView = { status: 'done', reason: 'answered' },
) => ({ summary: summary(more), statusView, input: 'Hello\nthere', waits: {} }) as unknown as ListedRunRow

/** The table that a list of runs prints. */
async function tableOf(
  columns: number | undefined,
  ...rows: readonly (ListedRunRow | typeof runId)[]
): Promise<string> {
  let printed = ''
  const list = new RunTable(async (text) => void (printed += text), columns)
  for (const one of rows) await (typeof one === 'string' ? list.addUnreadable(one) : list.add(one))
  await list.end()
  await list.end()
  return printed
}

describe('a list of runs', () => {
  const parent = { runId, seq: 3, relation: 'child' as const }
  const failed = { name: 'pay', outcome: 'failed' as const, count: 2 }
  const work = row({ runId: sampleRunId(2), parent, agents: ['clerk'], calls: [failed] })
  const { costUsd: _cost, usage: _usage, ...unpriced } = summary()
  const bare = {
    ...row(),
    summary: { ...unpriced, runId: sampleRunId(3), usage: {} },
  } as unknown as ListedRunRow

  it('has everything where its reader is not a terminal, each child run under its parent', async () => {
    const all = await tableOf(undefined, work, row({ agents: ['triage', 'host'] }), sampleRunId(4))
    expect(all).toBe(
      lines(
        'RUN                                     AGENT          PART OF                                            TURNS  CALLS  TOKENS  COST     TOOK       STARTED                   INPUT        WORST          STATUS',
        `${runId}    triage → host                                                     2      3      15      $0.5000  1 min 5 s  2026-06-30T12:34:00.000Z  Hello there                 done: answered`,
        `└ ${sampleRunId(2)}  clerk          child of run ${runId}  2      3      15      $0.5000  1 min 5 s  2026-06-30T12:34:00.000Z  Hello there  pay failed ×2  done: answered`,
        `${sampleRunId(4)}    ?                                                                 ?      ?      ?       ?        ?          ?                                                     unreadable`,
      ),
    )
  })

  it('says of what runs are a part only where one is', async () => {
    expect(await tableOf(undefined, bare)).toBe(
      lines(
        'RUN                                   AGENT  TURNS  CALLS  TOKENS  COST  TOOK       STARTED                   INPUT        WORST  STATUS',
        `${sampleRunId(3)}  host   2      3      0       -     1 min 5 s  2026-06-30T12:34:00.000Z  Hello there         done: answered`,
      ),
    )
  })

  it('takes one line of a terminal for each run, with the agent where there is room', async () => {
    expect(await tableOf(80, work, row(), sampleRunId(4))).toBe(
      lines(
        'RUN         STARTED      TOOK   COST     STATUS                   INPUT',
        '00000001    06-30 12:34  1m05s  $0.5000  answered                 Hello there',
        '└ 00000002  06-30 12:34  1m05s  $0.5000  answered; pay failed ×2  Hello there',
        '00000004    ?            ?      ?        unreadable',
      ),
    )
    const long = { agents: ['a-very-long-name', 'host'] }
    expect(await tableOf(110, row(long), sampleRunId(4))).toBe(
      lines(
        'RUN       STARTED      TOOK   COST     AGENT               STATUS      INPUT',
        '00000001  06-30 12:34  1m05s  $0.5000  a-very-long-name …  answered    Hello there',
        '00000004  ?            ?      ?        ?                   unreadable',
      ),
    )
    expect((await tableOf(60, row())).split('\n')[1]).toBe(
      '00000001  06-30 12:34  1m05s  $0.5000  answered  Hello there',
    )
    expect((await tableOf(50, row())).split('\n')[1]).toBe(
      '00000001  06-30 12:34  1m05s  $0.5000  answered  …',
    )
  })

  it.each<[RunStatusView, string]>([
    [{ status: 'done' }, 'done'],
    [{ status: 'done', reason: 'limit', detail: 'x' }, 'limit'],
    [{ status: 'suspended' }, 'suspended'],
    [{ status: 'suspended', detail: 'approval of pay call_0f_1_1_1' }, 'waits: approval of pay'],
    [{ status: 'under_way', detail: 'turn 1' }, 'under way'],
    [{ status: 'interrupted' }, 'interrupted'],
  ])('says the status in short: %j', async (view, words) => {
    const [, line = ''] = (await tableOf(200, row({}, view))).split('\n')
    expect(line.split(/ {2,}/)[5]).toBe(words)
  })

  it.each([
    [undefined, '-'],
    [0.01234, '$0.0123'],
    [1, '$1.00'],
    [99.994, '$99.99'],
    [100, '$100'],
    [1234.5, '$1235'],
  ])('says a cost of %s as %s', async (costUsd, text) => {
    const [, line = ''] = (await tableOf(200, row({ costUsd } as object))).split('\n')
    expect(line.split(/ {2,}/)[3]).toBe(text)
  })

  it('is printed a thousand runs at a time', async () => {
    const parts: string[] = []
    const list = new RunTable(async (text) => void parts.push(text), 80)
    for (let ordinal = 0; ordinal < 1_001; ordinal++) await list.add(row({ runId: sampleRunId(ordinal) }))
    expect(parts.map((part) => part.split('\n').length)).toEqual([1_002])
    await list.end()
    expect(parts.map((part) => part.split('\n').length)).toEqual([1_002, 3])
  })
})

it('the worst of a run is what weighs most, then what came most often', () => {
  const call = (name: string, outcome: Outcome, count: number) => ({ name, outcome, count })
  const weights: readonly Outcome[] = [
    ...(['interrupted', 'timed_out', 'failed', 'unknown_tool', 'invalid_input', 'denied'] as const),
    ...(['limit_reached', 'cancelled', 'skipped', 'repeated'] as const),
  ]
  weights.forEach((outcome, place) => {
    const calls = weights
      .slice(place)
      .toReversed()
      .map((each) => call('a', each, 1))
    expect(
      formatWorst({ calls: [...calls, call('b', outcome, 3), call('c', 'success', 9)], failedAttempts: 1 }),
    ).toBe(`b ${outcome} ×3`)
  })
  const fine = [call('a', 'success', 1)]
  expect([0, 1, 2].map((failedAttempts) => formatWorst({ calls: fine, failedAttempts }))).toEqual([
    ...['', 'model call failed', 'model call failed ×2'],
  ])
})

it.each([
  [0, '0 ms', '0ms'],
  [999.4, '999 ms', '999ms'],
  [1_000, '1.0 s', '1.0s'],
  [59_949, '59.9 s', '59.9s'],
  [59_950, '1 min 0 s', '1m00s'],
  [3_599_000, '59 min 59 s', '59m59s'],
  [3_600_000, '1 h 0 min', '1h00m'],
  [7_500_000, '2 h 5 min', '2h05m'],
  [48 * 3_600_000 - 60_000, '47 h 59 min', '47h59m'],
  [48 * 3_600_000, '48 h 0 min', '2d'],
  [12 * 86_400_000, '288 h 0 min', '12d'],
])('%i milliseconds are %s, or %s', (ms, text, short) => {
  expect([formatDuration(ms), formatShortDuration(ms)]).toEqual([text, short])
})

it('a moment is shown in UTC, and a number that is not a date as it is', () => {
  expect([formatTime(0), formatTime(9e15)]).toEqual(['1970-01-01T00:00:00.000Z', '9000000000000000 ms'])
})

it('counts are shown with their noun, and what is unknown with a question mark', () => {
  expect([0, 1, 2].map((count) => formatCount(count, 'turn'))).toEqual(['0 turns', '1 turn', '2 turns'])
  expect(formatUsage({ inputTokens: 0 })).toBe('0 tokens in, ? out')
  const spending = { turns: 1, toolCalls: 2, reused: 0, usage: {} }
  expect([
    formatSpent(spending as never),
    formatSpent({
      ...spending,
      reused: 1,
      costUsd: 0.5,
      usage: { inputTokens: 1, outputTokens: 2 },
    } as never),
  ]).toEqual([
    '1 turn, 2 tool calls, ? tokens in, ? out',
    '1 turn, 2 tool calls, 1 result from the record, 1 tokens in, 2 out, $0.5000',
  ])
  expect(formatTally({ requests: 1, results: 0, open: ['a', 'b'] } as never)).toBe(
    '1 request, 0 results, 2 open (a, b)',
  )
  expect(formatTally({ requests: 2, results: 2, open: [] })).toBe('2 requests, 2 results, 0 open')
})

// Lists of more runs than are looked up at once, and what the list says where there are no runs, or more.

const many = 130
let folder: string
let path: string
const ordinals = Array.from({ length: many }, (_, index) => index + 1)
const idOf = (ordinal: number): RunId => sampleRunId(ordinal)

/** Runs 1 to 130, each a minute after the one before it; every tenth is of one session, and the last is unfinished. */
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tallystick-list-parts-'))
  path = join(folder, 'runs.db')
  const ledger = sqliteLedger(path)
  for (const ordinal of ordinals) {
    const runId = idOf(ordinal)
    const { run_started, input_received: input, run_finished: end } = sampleFacts(runId)
    const { sessionId: _session, sessionPlace: _place, parent: _parent, ...start } = run_started
    const session = ordinal % 10 === 0 ? { sessionId: 'chat', sessionPlace: ordinal / 10 } : {}
    const ended = { ...end, turn: 0, turns: 0, toolCalls: 0, usage: {} }
    const facts = [
      { ...start, ...session },
      { ...input, message: sampleMessage(`question ${ordinal}`) },
      ...(ordinal === many ? [] : [ended]),
    ]
    const events = stampFacts(runId, facts).map((event) => ({ ...event, at: event.at + ordinal * 60_000 }))
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
  }
  await ledger.close()
})
afterAll(() => rmSync(folder, { recursive: true }))

const newestFirst = ordinals.toReversed()
/** The lines of a table after its head. */
const rowsIn = (text: string): readonly string[] => text.trimEnd().split('\n').slice(1)

/** The runs that are listed as JSON, by their ordinals, with their inputs. */
async function listed(...words: readonly string[]): Promise<readonly (readonly [number, unknown])[]> {
  const { code, stdout, stderr } = await tallystickHere('list', path, '--json', ...words)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const rows = stdout === '' ? [] : stdout.trimEnd().split('\n').map(json)
  return (rows as readonly { runId: string; input: unknown }[]).map(({ runId, input }) => [
    ordinals.find((ordinal) => idOf(ordinal) === runId) ?? 0,
    input,
  ])
}
const withInput = (some: readonly number[]): readonly (readonly [number, unknown])[] =>
  some.map((ordinal) => [ordinal, `question ${ordinal}`])

describe('a list of many runs', () => {
  it('given more than are looked up at once, when they are listed, then each once, the newest first, with its input', async () => {
    expect(await listed()).toEqual(withInput(newestFirst))
    for (const limit of [1, 63, 64, 65, 128, 129, 130]) {
      expect(await listed('--limit', `${limit}`)).toEqual(withInput(newestFirst.slice(0, limit)))
    }
    expect(await listed('--before', idOf(66))).toEqual(withInput(newestFirst.slice(65)))
  })

  it('given a session, when its runs are listed, then from any of them on', async () => {
    const ofSession = newestFirst.filter((ordinal) => ordinal % 10 === 0)
    expect(await listed('--session', 'chat')).toEqual(withInput(ofSession))
    expect(await listed('--session', 'chat', '--before', idOf(50))).toEqual(withInput([40, 30, 20, 10]))
    expect(await listed('--session', 'chat', '--status', 'interrupted')).toEqual(withInput([130]))
    expect(await listed('--session', 'chat', '--limit', '2')).toEqual(withInput([130, 120]))
  })

  it('given no process that drives runs, when they are listed by status, then none is under way', async () => {
    expect(await listed('--status', 'under_way')).toEqual([])
    expect(await listed('--status', 'interrupted')).toEqual(withInput([130]))
    expect(await listed('--status', 'failed')).toEqual([])
    expect(await listed('--status', 'done')).toEqual(withInput(newestFirst.slice(1)))
  })

  it('given a person who reads, when there are more, then fifty are shown, with the command for the next page', async () => {
    const first = await tallystickRead(160, 'list', path)
    expect(rowsIn(first.stdout)).toHaveLength(50)
    expect(first.stderr).toContain(
      `There are more. The next page: tallystick list ${path} --before ${idOf(81)}\n`,
    )
    const words = ['--session', 'chat', '--status', 'done', '--agent', 'assistant', '--since', '2000-01-01']
    const next = await tallystickRead(160, 'list', path, ...words, '--limit', '3')
    expect(next.stderr).toContain(
      `tallystick list ${path} ${words.join(' ')} --limit 3 --before ${idOf(100)}\n`,
    )
    const last = await tallystickRead(160, 'list', path, '--before', idOf(51))
    expect(rowsIn(last.stdout)).toHaveLength(50)
    expect(last.stderr).not.toContain('There are more')
    expect((await tallystickHere('list', path, '--limit', '3')).stderr).not.toContain('There are more')
  })

  it('given filters that no run fits, when it is listed, then the list says which runs there are not', async () => {
    const said = async (...words: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await tallystickHere('list', path, ...words)
      expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
      return stderr
    }
    const none = 'This ledger holds no runs'
    expect(await said('--agent', 'cook')).toBe(`${none} of agent cook.\n`)
    expect(await said('--status', 'suspended')).toBe(`${none} that are suspended.\n`)
    expect(await said('--tool', 'pay')).toBe(`${none} with a call of pay.\n`)
    expect(await said('--outcome', 'failed')).toBe(`${none} with a call that ended as failed.\n`)
    expect(await said('--tool', 'pay', '--outcome', 'failed')).toBe(
      `${none} with a call of pay that ended as failed.\n`,
    )
    expect(await said('--before', idOf(1))).toBe(`${none} after ${idOf(1)}.\n`)
    expect(await said('--since', '2999-01-01')).toBe(`${none} with an event since 2999-01-01.\n`)
    expect(await said('--session', 'none', '--agent', 'cook')).toBe(
      `${none} of session none of agent cook.\n`,
    )
  })
})

describe('the end of a list that a person reads', () => {
  it('says what takes the runs that wait further, three of them at most', async () => {
    await using shop = await openShop()
    const said = async (): Promise<readonly string[]> => {
      const { code, stderr } = await tallystickRead(100, 'list', shop.ledgerPath)
      expect(code).toBe(0)
      return stderr.split('\n')
    }
    const heading = 'What continues those that wait:'
    const command = expect.stringMatching(/^ {2}tallystick \w+ .+$/) as string
    await shop.start()
    expect(await said()).toEqual([heading, command, ''])
    for (let more = 0; more < 2; more++) await shop.start()
    expect(await said()).toEqual([heading, command, command, command, ''])
    await shop.start()
    expect(await said()).toEqual([heading, command, command, command, '  …', ''])
    expect((await tallystickHere('list', shop.ledgerPath)).stderr).toBe('')
  })
})
