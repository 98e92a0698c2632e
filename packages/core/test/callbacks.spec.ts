// What becomes of a run where a function of the application is wrong.
import { describe, expect, it } from 'vitest'
import {
  createRuntime,
  memoryLedger,
  joinText,
  type RunId,
  type RunResult,
  type RuntimeEvent,
  type TallystickError,
} from '@tallystick/core'
import { callbacks, wrongs, type Callback, type Code, type Wrong } from './callback-table.ts'
import { checkedRun, recorded } from './stage.ts'

/** Plays a run, and what is said of it to its caller, to the model and to the host. */
async function played({ give, right }: Callback, wrong: Code): Promise<Played> {
  let code = wrong
  const ledger = memoryLedger()
  const said: string[] = []
  const report = (error: unknown, what: string): void => void said.push(what, String(error))
  let runId: RunId | undefined
  const eventsOf = async (): Promise<readonly RuntimeEvent[]> =>
    runId && (await ledger.head(runId)) ? await recorded(ledger, runId) : []
  const play = async (): Promise<RunResult> => {
    const { agent, runtime } = give((...given) => code(...given))
    const made = createRuntime({ ledger, agents: [agent], ...runtime, host: { ...runtime?.host, report } })
    const [first] = await eventsOf()
    const run = first ? made.resume(first.runId) : made.run(agent, 'Go.')
    runId = run.id
    return await run.result
  }
  let failure: TallystickError | undefined
  try {
    const { detail } = (await play()) as { readonly detail?: string }
    said.push(detail ?? '')
  } catch (error) {
    failure = error as TallystickError
    said.push(failure.message)
  }
  const events = await eventsOf()
  for (const event of events) {
    if (event.type === 'guardrail_tripped') said.push(`${event.guardrail}: ${event.detail}`)
    if (event.type === 'tool_result') said.push(joinText(event.content))
  }
  const text = said.join('\n')
  return {
    failure,
    events,
    said: text,
    hasWayOn: /Run \S+ is on record up to here.* continue it with resume/.test(text),
    correct: async () => {
      code = right
      return { result: await play(), events: await eventsOf() }
    },
  }
}

/** What became of a run. */
interface Played {
  readonly failure: TallystickError | undefined
  readonly said: string
  readonly events: readonly RuntimeEvent[]
  /** Whether it says how the run continues. */
  readonly hasWayOn: boolean
  /** Corrects the function, and continues the run, or starts it where nothing of it is on record. */
  readonly correct: () => Promise<{
    readonly result: RunResult
    readonly events: readonly RuntimeEvent[]
  }>
}

const cases = Object.entries(callbacks).flatMap(([option, callback]) =>
  (Object.keys(wrongs) as Wrong[]).map((wrong) => ({
    option,
    wrong,
    callback,
    isWrong: !callback.allows?.includes(wrong),
  })),
)

describe('a function of the application that is wrong', () => {
  it.each(cases.filter(({ isWrong }) => isWrong))(
    'is named where it is $option and $wrong, and the run continues once it is right',
    async ({ wrong, callback }) => {
      const { failure, said, events, hasWayOn, correct } = await played(callback, wrongs[wrong])
      expect(said).toMatch(callback.named)
      expect(said).toContain(wrong === 'throws' ? 'boom' : '')
      checkedRun(events)
      expect(failure?.code ?? 'configuration').toBe('configuration')
      expect(hasWayOn).toBe(failure !== undefined && events.length > 0)
      const { result, events: corrected } = await correct()
      expect(result.status).toBe('done')
      checkedRun(corrected)
    },
  )

  it.each(cases.filter(({ isWrong }) => !isWrong))(
    'may be $option that $wrong',
    async ({ wrong, callback }) => {
      const { failure, events } = await played(callback, wrongs[wrong])
      expect(failure).toBe(undefined)
      expect(checkedRun(events).at(-1)).toMatchObject({ type: 'run_finished', reason: 'answered' })
    },
  )
})
