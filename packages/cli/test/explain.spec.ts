import { join } from 'node:path'
import { defineAgent, type AgentOptions, createRuntime, type RunOptions } from '@tallystick/core'
import { readMessages } from '@tallystick/core/internal'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { scriptedModel, manualClock, testTool, type ScriptedStep } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import {
  formatAlike,
  type CallStory,
  haveEndedAlike,
  formatOutline,
  formatSimilar,
} from '../src/runs/run-story.ts'
import { openShop } from './kit/shop.ts'
import { json, tallystickHere } from './kit/tallystick.ts'
import { temporaryFolder } from '../../../scripts/testing/temporary-folder.ts'

describe('explain', () => {
  it('shows the parts of a request, each with the events that it came from', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const { code, stdout } = await tallystickHere('explain', shop.ledgerPath, 'latest', '2')
    expect(code).toBe(0)
    expect(stdout).toContain(`turn     2, agent shopper, model scripted-1\n`)
    expect(stdout).toMatch(/^attempt {2}1 at event \d+: answered$/m)
    expect(stdout).toMatch(/^input {4}about \d+ tokens$/m)
    expect(stdout).toMatch(/^ITEM +EVENTS +TOKENS +COST +WHAT$/m)
    expect(stdout).toMatch(/^instructions +1 +\d+ *$/m)
    expect(stdout).toMatch(/^0 user +2 +\d+ +Buy tea\.$/m)
    expect(stdout).toMatch(/^1 assistant +\d+-\d+ +\d+ +I look\. look\(…\)$/m)
    expect(stdout).toMatch(/^2 tool +\d+-\d+ +\d+ +look: success$/m)
    const forPrograms = await tallystickHere('explain', shop.ledgerPath, runId, '2', '--json')
    expect(json(forPrograms.stdout)).toMatchObject({
      ...{ runId, turn: 2, agent: 'shopper', leftOut: [] },
      items: [
        { kind: 'instructions', seqs: [1] },
        { kind: 'tools' },
        { index: 0, seqs: [2] },
        {},
        { index: 2 },
      ],
    })
  })

  it('names what the options of an adapter add to a request, as show --request does', async () => {
    await using shop = await openShop()
    const additions = [
      { option: 'extraBody', field: 'instructions', replaces: true, digest: 'd1' },
      { option: 'headers', field: 'x-token' },
    ] as const
    const model = { ...scriptedModel([{ text: 'Hello.' }]), additions }
    const { runId } = await shop.start(defineAgent({ name: 'greeter', instructions: 'Greet.', model }))
    const explained = await tallystickHere('explain', shop.ledgerPath, runId, '1')
    expect(explained.stdout).toMatch(/^replaced +instructions \(option extraBody, SHA-256 d1\)$/m)
    expect(explained.stdout).toMatch(/^added +the header x-token \(option headers, a credential\)$/m)
    const shown = await tallystickHere('show', shop.ledgerPath, runId, '--request', '--at', '3')
    expect(shown.stdout).toContain("The adapter's options replace instructions (option extraBody")
    const forPrograms = await tallystickHere('show', shop.ledgerPath, runId, '--json')
    expect(json(forPrograms.stdout)).toMatchObject({ request: { additions } })
  })

  it('is a 2 for a turn that the run did not have, or that is not a number', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    expect(await tallystickHere('explain', shop.ledgerPath, runId, '9')).toMatchObject({
      ...{ code: 2, stdout: '', stderr: expect.stringContaining(`Run ${runId} has no turn 9`) },
    })
    expect((await tallystickHere('explain', shop.ledgerPath, runId, 'two')).code).toBe(2)
  })
})

// What `explain` prints of a request whose parts were replaced, left out, paid and decided about.

const usage = { inputTokens: 1000, outputTokens: 100 }
const prices = { 'scripted-1': { inputUsd: 3, outputUsd: 15, source: 'test' } }
const look = testTool({ name: 'look', run: () => 'Seen.' })
const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }), run: () => 'Paid.' })
const calls = (...given: { name: string; input: Record<string, string | number> }[]): ScriptedStep => ({
  toolCalls: given,
})

/** The lines of `explain` about a turn of a run that is driven to its answer; what each call that asks gets. */
async function explained(
  turn: number,
  steps: readonly ScriptedStep[],
  options: Partial<AgentOptions<unknown>> = {},
  { decide, ...more }: RunOptions & { decide?: 'deny' | { input: object } } = {},
): Promise<readonly string[]> {
  const folder = temporaryFolder()
  const path = join(folder, 'runs.db')
  const ledger = sqliteLedger(path)
  const agent = defineAgent({
    ...{ name: 'looker', instructions: 'Look.', model: scriptedModel(steps), tools: [look, pay] },
    ...options,
  })
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock: manualClock() }, prices })
  const run = runtime.run(agent, 'Look at it.', more)
  let { pendingApprovals } = await run.result
  if (decide !== undefined) {
    const [waiting] = pendingApprovals
    const call = waiting?.toolCallId ?? ''
    const resumed = runtime.resume(run.id)
    if (decide === 'deny') await resumed.deny(call, { by: 'ada', reason: 'No.' })
    else await resumed.approve(call, { by: 'bob', ...decide } as never)
    pendingApprovals = (await resumed.result).pendingApprovals
  }
  expect(pendingApprovals).toEqual([])
  await ledger.close()
  const { code, stdout } = await tallystickHere('explain', path, 'latest', `${turn}`)
  expect(code).toBe(0)
  return stdout.trimEnd().split('\n')
}

/** The first words of each line after the head of the table, one space between them, without tokens. */
function rows(lines: readonly string[]): readonly string[] {
  const head = lines.findIndex((line) => line.startsWith('ITEM'))
  return lines.slice(head + 1).map((line) => line.trimEnd())
}

describe('explain in words', () => {
  it('given a summary of summaries, when it is explained, then each message that it replaced is a line below it', async () => {
    const lines = await explained(
      4,
      [
        calls({ name: 'look', input: { at: 'a' } }),
        calls({ name: 'look', input: { at: 'b' } }),
        calls({ name: 'look', input: { at: 'c' } }),
        { text: 'Seen.' },
      ],
      {
        compaction: {
          maxContextTokens: 30,
          keepMessages: 1,
          summarize: (all: readonly unknown[]) => `${all.length} before.`,
        },
      },
    )
    const replaced = rows(lines).filter((line) => line.includes('replaced: '))
    expect(replaced.map((line) => line.replace(/ {2,}\S+ +\d+$/, ''))).toEqual([
      '  replaced: user',
      '    replaced: assistant',
      '    replaced: tool',
      '  replaced: assistant',
      '  replaced: tool',
    ])
    for (const line of replaced) expect(line).toMatch(/: \w+ +[\d,-]+ +\d+$/)
    const summary = rows(lines).findIndex((line) => line.startsWith('0 user'))
    expect(rows(lines)[summary]).toMatch(/^0 user +\d+ +\d+ +\d+ before\.$/)
    expect(rows(lines)[summary + 1]).toMatch(/^ {2}replaced: user/)
  })

  it('given messages that a turn was not shown, when it is explained, then they are lines after the others', async () => {
    const lines = await explained(2, [calls({ name: 'look', input: { at: 'a' } }), { text: 'Seen.' }], {
      prepareTurn: ({ turn, history }) =>
        turn === 1 ? { messages: readMessages(history).slice(1) } : undefined,
    })
    expect(rows(lines).at(-1)).toMatch(/^left out: user +2 +\d+$/)
  })

  it('given attempts that failed and prices, when it is explained, then each attempt and item has its cost', async () => {
    const lines = await explained(
      1,
      [
        { text: 'I', usage, fail: 'overloaded' },
        { text: 'Seen.', usage },
      ],
      { retry: { baseMs: 0, capMs: 0 } },
    )
    const attempts = lines.filter((line) => line.startsWith('attempt'))
    expect(attempts).toEqual([
      expect.stringMatching(/^attempt {2}1 at event \d+: failed \(overloaded\)/),
      expect.stringMatching(/^attempt {2}2 at event \d+: answered, 1000 tokens in, 100 out, \$0\.004500$/),
    ])
    expect(lines).toContainEqual(expect.stringMatching(/^input {4}about \d+ tokens, 1000 billed$/))
    for (const row of rows(lines)) expect(row).toMatch(/ \$0\.00\d{4}/)
  })

  it('given calls that were decided about, when they are explained, then it says by whom, and what ran instead', async () => {
    const asked = [calls({ name: 'pay', input: { usd: 5 } }), { text: 'Done.' }]
    const denied = await explained(2, asked, {}, { decide: 'deny' })
    expect(rows(denied).at(-1)).toMatch(/pay: denied \(denied by ada\)$/)
    const approved = await explained(2, asked, {}, { decide: { input: { usd: 4 } } })
    expect(rows(approved).at(-1)).toMatch(/pay: success \(ran with \{"usd":4\}, approved by bob\)$/)
  })

  it('given calls and words of one reply, when they are explained, then in their order, and cut where they are long', async () => {
    const lines = await explained(2, [
      {
        text: 'I look, and I look again, and then I look at all of it. ',
        toolCalls: [
          { name: 'look', input: { at: 'a' } },
          { name: 'look', input: { at: 'b' } },
        ],
      },
      { text: 'Seen.' },
    ])
    const [, , , assistant = '', tool = ''] = rows(lines)
    const shown = assistant.replace(/^1 assistant +\S+ +\d+ +/, '')
    expect(shown).toMatch(/^I look, and I look again, and then I look at all of it\. loo…$/)
    expect(shown).toHaveLength(60)
    expect(tool).toMatch(/^2 tool +[\d,-]+ +\d+ +look: success, look: success$/)
  })
})

const call = (more: object = {}): CallStory =>
  ({
    ...{ toolCallId: 'call_1', name: 'look', turn: 1, attempt: 1, requested: {}, requestedSeq: 1 },
    ...{ outcome: 'success', content: [{ type: 'text', text: '5 left' }] },
    ...more,
  }) as unknown as CallStory
const said = (text: string) => ({ content: [{ type: 'text', text }] })
const open = { outcome: undefined, content: undefined }

describe('calls of one tool on one line', () => {
  it('are their number, how they ended, and what differs in their inputs', () => {
    const asked = (query: string, limit = 5) => call({ requested: { query, limit }, ...said('[]') })
    expect(formatSimilar([asked('a'), asked('b'), asked('a')])).toBe('look × 3; all empty; query: "a", "b"')
    expect(formatSimilar([asked('a', 1), asked('b', 2)])).toBe(
      'look × 2; all empty; query: "a", "b"; limit: 1, 2',
    )
    expect(formatSimilar([asked('a'), asked('a')])).toBe('look × 2; all empty; always with the same input')
    expect(formatSimilar([])).toBe('')
  })

  it('are one call without its input', () => {
    expect(formatSimilar([call()])).toBe('look; success')
    expect(formatSimilar([call(open)])).toBe('look; 1 open')
    expect(formatSimilar([call({ outcome: 'failed' })])).toBe('look; failed')
  })

  it('are counted by their endings where these differ', () => {
    const calls = [call(), call(open), call({ outcome: 'failed' }), call(), call(said(''))]
    expect(formatSimilar(calls)).toBe(
      'look × 5; 2 success, 1 failed, 1 empty, 1 open; always with the same input',
    )
    expect(formatSimilar([call(open), call(open)])).toBe('look × 2; 2 open; always with the same input')
  })

  it.each(['', ' ', '[]', ' []\n', '{}', 'null', '""'])('are empty where a success said %j', (text) => {
    expect(formatSimilar([call(said(text))])).toBe('look; empty')
    expect(formatSimilar([call({ outcome: 'failed', ...said(text) })])).toBe('look; failed')
  })

  it('show five values of a key and three keys, and count the rest', () => {
    const values = (count: number) =>
      formatSimilar(Array.from({ length: count }, (_, n) => call({ requested: { n } })))
    expect(values(5)).toBe('look × 5; all success; n: 0, 1, 2, 3, 4')
    expect(values(6)).toBe('look × 6; all success; n: 0, 1, 2, 3, 4, … 1 more')
    expect(values(7)).toContain('… 2 more')
    const keys = (...names: readonly string[]) =>
      formatSimilar([1, 2].map((n) => call({ requested: Object.fromEntries(names.map((key) => [key, n])) })))
    expect(keys('a', 'b', 'c')).toBe('look × 2; all success; a: 1, 2; b: 1, 2; c: 1, 2')
    expect(keys('a', 'b', 'c', 'd')).toBe('look × 2; all success; a: 1, 2; b: 1, 2; c: 1, 2; 1 more differ')
    expect(keys('a', 'b', 'c', 'd', 'e')).toContain('; 2 more differ')
  })

  it('show what is not there as nothing, and long names and values cut', () => {
    expect(formatSimilar([call(), call({ requested: { at: 'x' } })])).toBe(
      'look × 2; all success; at: nothing, "x"',
    )
    expect(formatSimilar([call(), call({ requested: { toString: 'x' } })])).toContain(
      'toString: nothing, "x"',
    )
    const long = formatSimilar([
      call({ name: 'n'.repeat(70), requested: { ['k'.repeat(70)]: 'v'.repeat(40) } }),
      call({ name: 'n'.repeat(70) }),
    ])
    expect(long).toBe(`${'n'.repeat(59)}… × 2; all success; ${'k'.repeat(59)}…: "${'v'.repeat(28)}…, nothing`)
  })

  it('are shown with what they ended with, where that is the same', () => {
    expect(formatAlike([call(), call()])).toBe(
      'look × 2; all success; always with the same input\nresult each time: 5 left',
    )
    expect(formatAlike([call(said(''))])).toBe('look; empty\nresult each time: nothing')
    expect(formatAlike([call(said('x'.repeat(50)))])).toContain(`result each time: ${'x'.repeat(39)}…`)
  })
})

describe('two calls', () => {
  it('ended alike where tool, outcome and result are the same', () => {
    expect(haveEndedAlike(call(), call({ requested: { at: 'x' } }))).toBe(true)
    for (const more of [{ name: 'weigh' }, { outcome: 'failed' }, said('6 left'), open]) {
      expect([haveEndedAlike(call(), call(more)), haveEndedAlike(call(more), call())]).toEqual([false, false])
    }
    expect(haveEndedAlike(call(open), call(open))).toBe(false)
  })
})

describe('the outline of a tool', () => {
  it('says how many more values there are at least, where no more were told apart', () => {
    const text = (count: number): string =>
      formatOutline({
        ...{ name: 'look', calls: 500, endings: [{ ending: 'success', count: 500 }] },
        inputs: [{ key: 'at', values: Array.from({ length: count }, (_, at) => `${at}`) }],
      })
    expect(text(100)).toBe('look × 500; all success; at: 0, 1, 2, 3, 4, … 95 more')
    expect(text(101)).toBe('look × 500; all success; at: 0, 1, 2, 3, 4, … at least 96 more')
  })
})
