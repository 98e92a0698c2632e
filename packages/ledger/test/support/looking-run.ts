import {
  createRuntime,
  defineAgent,
  type Agent,
  type Ledger,
  type Model,
  type Run,
  type RunId,
  type Runtime,
} from '@tallystick/core'
import { manualClock, seededRandom, testTool } from '@tallystick/testkit'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import { from, mergeMap, Observable } from 'rxjs'

const deltas = Array.from({ length: 20 }, (_, index) => `w${String(index).padStart(3, '0')} `)
const usage = { inputTokens: 120, outputTokens: 20 }

/** A reply of twenty deltas of five characters and one call; the last reply of a run has no call. */
function replyOf(turn: number, { turns, seed }: Pick<LookingRun, 'turns' | 'seed'>): readonly ModelSignal[] {
  const input = { at: `${seed}${String(turn).padStart(4, '0')}` }
  const call = {
    type: 'tool_call',
    providerCallId: `call_${turn}`,
    name: 'look',
    input,
  } as const
  const isLast = turn === turns
  const text = { part: 0, type: 'text', text: deltas.join('') } as const
  return [
    { type: 'model_started', providerMessageId: `message_${turn}` },
    ...deltas.map((piece) => ({ type: 'model_text', part: 0, text: piece }) as const),
    ...(isLast
      ? []
      : ([
          { type: 'model_tool_input', part: 1, name: 'look', text: JSON.stringify(input) },
          { type: 'model_tool_request', part: 1, call },
        ] as const)),
    { type: 'model_usage', usage },
    {
      type: 'model_finished',
      stopReason: isLast ? 'end' : 'tool_use',
      parts: isLast ? [text] : [text, { part: 1, ...call }],
    },
  ]
}

/** A run of equal turns, to be driven on a ledger. */
export interface LookingRun {
  readonly ledger: Ledger
  readonly turns: number
  /**
   * From 1 to 9: runs of different seeds have no id and no input in common, so that none profits from digests of another. The
   * seeds 1 and 2 are those of the costs of a turn, whose hashes are counted.
   */
  readonly seed: number
  /** Resolves when the next signal of the model may come. */
  readonly pause: () => Promise<void>
}

/** Drives a run whose every turn but the last streams twenty deltas and calls one tool that answers at once. */
export async function driveLookingRun(options: LookingRun): Promise<RunId> {
  const { runtime, agent } = looking(options)
  const run = runtime.run(agent, 'Look.')
  return await answered(run)
}

/** Drives such runs of one session, one after the other, each with a subscriber; `before` is called before each. */
export async function driveLookingSession(
  options: LookingRun & { readonly runs: number; readonly before: (run: number) => void },
): Promise<void> {
  const { runtime, agent } = looking(options)
  const session = runtime.session('talk')
  for (let each = 1; each <= options.runs; each++) {
    options.before(each)
    const run = await session.run(agent, 'Look.')
    const subscription = run.events$.subscribe()
    await answered(run)
    subscription.unsubscribe()
  }
}

async function answered(run: Run): Promise<RunId> {
  const { reason } = await run.result
  if (reason !== 'answered') throw new Error(`The run ended as ${reason}.`)
  return run.id
}

function looking({ ledger, turns, seed, pause }: LookingRun): {
  readonly runtime: Runtime
  readonly agent: Agent
} {
  let turn = 0
  const model: Model = {
    ...{ provider: 'scripted', api: 'script', modelId: 'scripted-1' },
    stream: () => {
      turn = (turn % turns) + 1
      return from(replyOf(turn, { turns, seed })).pipe(
        mergeMap(
          (signal) =>
            new Observable<ModelSignal>((subscriber) => {
              void pause().then(() => {
                subscriber.next(signal)
                subscriber.complete()
              })
            }),
          1,
        ),
      )
    },
  }
  const tools = [testTool({ name: 'look', run: ({ input }) => `seen ${JSON.stringify(input)}` })]
  const limits = { maxTurns: turns + 1 }
  const agent = defineAgent({ name: 'looker', instructions: 'Look at everything.', model, tools, limits })
  const host = { clock: manualClock(), random: seededRandom(seed) }
  return { runtime: createRuntime({ ledger, agents: [agent], host }), agent }
}
