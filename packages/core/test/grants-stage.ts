import { expect } from 'vitest'
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type AgentOptions,
  type Ledger,
  type Prices,
  type RunResult,
  type RuntimeEvent,
  type Tool,
} from '@tallystick/core'
import { type UserPart } from '@tallystick/core/vocabulary'
import {
  checkBudgets,
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ScriptedModel,
  type ScriptedReply,
  type ScriptedStep,
} from '@tallystick/testkit'
import { ofType, recorded } from './stage.ts'

export const prices: Prices = {
  cheap: { inputUsd: 1, outputUsd: 10 },
  dear: { inputUsd: 1_000, outputUsd: 10_000 },
  searching: { inputUsd: 1, outputUsd: 10, webSearchUsd: 0.01 },
  half: { inputUsd: 10, outputUsd: 0 },
}

/** A model that bills what a vendor would: a token for four characters of input, and all of the output it may write. */
export function billing(steps: readonly ScriptedReply[], modelId = 'cheap', most = 8_000): ScriptedModel {
  return scriptedModel(
    steps.map((reply): ScriptedStep => (request) => {
      const text = JSON.stringify([request.instructions, request.messages, request.tools])
      const outputTokens = Math.min(request.maxOutputTokens ?? most, most)
      return { usage: { inputTokens: Math.ceil(text.length / 8), outputTokens }, ...reply }
    }),
    modelId,
  )
}

export const look = { toolCalls: [{ name: 'look', input: {} }] } as const
export const counting = (name = 'look', effect: 'read' | 'write' = 'read'): Tool => {
  let count = 0
  return testTool({ name, effect, run: () => `${name} ${++count}` })
}

export interface Played {
  readonly result: RunResult
  readonly events: readonly RuntimeEvent[]
  readonly all: readonly (readonly RuntimeEvent[])[]
}

export async function play(
  options: Partial<AgentOptions> & { readonly model: AgentOptions['model'] },
  input: string | readonly UserPart[] = 'Spend.',
  ledger: Ledger = memoryLedger(),
): Promise<Played> {
  const clock = manualClock()
  const agent = defineAgent({ name: 'spender', instructions: 'Go.', ...options })
  const runtime = createRuntime({ ledger, agents: [agent], prices, host: { clock, random: () => 0 } })
  const run = runtime.run(agent, input)
  const result = await waitUntilSettled(clock, run.result)
  const all = await everything(ledger)
  expect(checkBudgets(all)).toEqual([])
  return { result, events: await recorded(ledger, run.id), all }
}

async function everything(ledger: Ledger): Promise<readonly (readonly RuntimeEvent[])[]> {
  const found: (readonly RuntimeEvent[])[] = []
  for await (const { runId } of ledger.runs()) found.push(await recorded(ledger, runId))
  return found
}

export const modelCalls = (events: readonly RuntimeEvent[]): number =>
  ofType(events, 'model_call_started').length
