// What `explain` prints of a request whose parts were replaced, left out, paid and decided about.
import { type AgentOptions, createRuntime, defineAgent, type RunOptions } from '@tallystick/core'
import { readMessages } from '@tallystick/core/internal'
import { manualClock, scriptedModel, testTool, type ScriptedStep } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { tallystickHere } from './kit/tallystick.ts'

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
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-explain-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
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
