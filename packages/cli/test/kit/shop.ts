import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Agent, createRuntime, defineAgent, type RunOptions, type RunResult } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { writeEmptyLedger } from '../../../../scripts/testing/empty-ledger.ts'

/** The configuration that gives the agent. */
export const shopConfig: string = fileURLToPath(import.meta.resolve('./tallystick.config.ts'))

/** An agent that looks a price up, asks to pay it, and says what became of that. Works it out from what it is sent. */
export function shopAgent(instructions = 'Buy tea.'): Agent {
  const model = scriptedModel(
    Array.from({ length: 100 }, () => ({ messages }) => {
      const last = messages.at(-1)
      if (last?.role !== 'tool')
        return { text: 'I look. ', toolCalls: [{ name: 'look', input: { at: 'tea' } }] }
      const [result] = last.results
      const [part] = result?.content ?? []
      const said = part?.type === 'text' ? part.text : ''
      if (result?.name === 'look')
        return { text: `It is ${said}. `, toolCalls: [{ name: 'pay', input: { usd: 5 } }] }
      return { text: `Payment: ${said}`, usage: { inputTokens: 20, outputTokens: 4 } }
    }),
  )
  const look = testTool({ name: 'look', run: ({ input }) => `${JSON.stringify(input['at'])} for 5 USD` })
  const pay = {
    ...testTool({
      name: 'pay',
      effect: 'write',
      check: () => ({ kind: 'ask', reason: 'it is money' }),
      run: ({ input }) => `${JSON.stringify(input['usd'])} USD paid`,
    }),
    inputSchema: { type: 'object', properties: { usd: { type: 'number' } } },
  }
  return defineAgent({ name: 'shopper', instructions, model, tools: [look, pay] })
}

/** A folder with a ledger in it, which goes away with the test. */
export interface Shop extends AsyncDisposable {
  readonly folder: string
  readonly ledgerPath: string
  /**
   * Drives a new run in this process until it rests. Without an agent that is the shopper, which rests when it waits
   * for the approval of `pay`.
   */
  start(agent?: Agent, options?: RunOptions): Promise<RunResult>
}

/** Opens a shop without any run. */
export async function openShop(): Promise<Shop> {
  const folder = await mkdtemp(join(tmpdir(), 'tallystick-cli-'))
  const ledgerPath = join(folder, 'runs.db')
  return {
    folder,
    ledgerPath,
    async start(agent = shopAgent(), options = {}) {
      if (!existsSync(ledgerPath)) writeEmptyLedger(ledgerPath)
      const ledger = sqliteLedger(ledgerPath)
      try {
        return await createRuntime({ ledger }).run(agent, 'Buy tea.', options).result
      } finally {
        await ledger.close()
      }
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

/** The call that a run waits for. */
export function callOf({ pendingApprovals: [approval] }: RunResult): string {
  if (approval === undefined) throw new Error('no call waits')
  return approval.toolCallId
}
