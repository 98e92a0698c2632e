import { createRuntime, defineAgent, type Ledger, type RunId } from '@tallystick/core'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'

/** Numbers from 0 to 1 that follow from the seed. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

/** Drives a run of two turns and two tool calls through the real runtime to its answer; the same one for a seed. */
export async function recordRun(ledger: Ledger, seed = 1): Promise<RunId> {
  const usage = { inputTokens: 120, outputTokens: 17 }
  const model = scriptedModel([
    {
      reasoning: 'The weather first.',
      text: 'Let me look.',
      toolCalls: [
        { id: 'c1', name: 'get_weather', input: { city: 'Seoul' } },
        { id: 'c2', name: 'book_seat', input: { seat: 4 } },
      ],
      usage,
    },
    { text: 'It is 21 °C, and seat 4 is yours.', usage },
  ])
  const agent = defineAgent({
    name: 'assistant',
    instructions: 'Answer briefly.',
    model,
    tools: [testTool({ name: 'get_weather' }), testTool({ name: 'book_seat', effect: 'write' })],
  })
  const host = { clock: manualClock(), random: seeded(seed) }
  const run = createRuntime({ ledger, agents: [agent], host }).run(
    agent,
    'How warm is it in Seoul? Seat 4, please.',
  )
  const { reason } = await run.result
  if (reason !== 'answered') throw new Error(`The recorded run ended as ${reason}.`)
  return run.id
}
