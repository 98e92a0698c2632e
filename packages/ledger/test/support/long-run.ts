import { createRuntime, defineAgent, type Ledger, type RunId } from '@tallystick/core'
import { manualClock, scriptedModel, seededRandom, testTool } from '@tallystick/testkit'

/** Drives a run of many turns, a tool call each, to its answer. About ten events a turn. */
export async function longRun(
  ledger: Ledger,
  turns: number,
  options: {
    readonly seed?: number
    readonly subject?: string
    readonly sessionId?: string
    /** When it begins and ends, in milliseconds since 1970 UTC. */
    readonly at?: number
  } = {},
): Promise<RunId> {
  const { seed = 1, at, ...of } = options
  const usage = { inputTokens: 120, outputTokens: 17 }
  const steps = Array.from({ length: turns - 1 }, (_, turn) => ({
    text: `Looking at ${turn}. `,
    toolCalls: [{ name: 'look', input: { at: turn } }],
    usage,
  }))
  const agent = defineAgent({
    name: 'looker',
    instructions: 'Look at everything.',
    model: scriptedModel([...steps, { text: 'All is well!', usage }]),
    tools: [testTool({ name: 'look', run: ({ input }) => `seen ${JSON.stringify(input)}` })],
    limits: { maxTurns: turns + 1 },
  })
  const host = { clock: manualClock(at), random: seededRandom(seed) }
  const run = createRuntime({ ledger, agents: [agent], host }).run(agent, 'Look.', of)
  const { reason } = await run.result
  if (reason !== 'answered') throw new Error(`The long run ended as ${reason}.`)
  return run.id
}
