import type { ProviderError } from '@tallystick/core'
import type { ModelFailure } from '@tallystick/core/vocabulary'
import { manualClock } from '../doubles/clock.ts'
import {
  checkModel,
  checkAbility,
  type ModelContractCase,
  type ModelHarness,
  require,
  requireEqual,
  type Scene,
} from './case.ts'
import {
  callModel,
  playOnStage,
  plainRequest,
  replying,
  replyWithCall,
  spokenReply,
  toolRequest,
  waitUntil,
} from './http-harness.ts'

async function callForFailure(harness: ModelHarness, scene: Scene): Promise<ProviderError> {
  return playOnStage(harness, [scene, replying(spokenReply)], async (stage) => {
    const { signals, failure } = await callModel(stage.model, plainRequest)
    require(failure !== undefined, 'the call fails')
    requireEqual(signals, [], 'What was reported before')
    require(stage.bodies.length <= 1, 'the adapter tries once, and leaves it to the runtime to try again')
    return failure
  })
}

/** Classes of failures, by the status of the answer. */
const byStatus: readonly (readonly [number, ModelFailure['class'], retryable: boolean])[] = [
  [400, 'invalid_request', false],
  [401, 'authentication', false],
  [403, 'permission', false],
  [404, 'not_found', false],
  [429, 'rate_limited', true],
  [500, 'server', true],
  [503, 'overloaded', true],
]

/** Everything that a log of the error could show. */
function writeOut(error: unknown, depth = 0): string {
  if (typeof error !== 'object' || error === null || depth > 4) return String(error)
  const fields = Object.getOwnPropertyNames(error).map((key) => (error as Record<string, unknown>)[key])
  return fields.map((field) => writeOut(field, depth + 1)).join('\n')
}

export const failureCases: readonly ModelContractCase[] = [
  checkAbility(
    'connection',
    'says by class and status what kind of refusal it met, after one attempt',
    async (harness) => {
      for (const [status, failureClass, retryable] of byStatus) {
        const failure = await callForFailure(harness, { type: 'refusal', status })
        requireEqual(
          [failure.class, failure.retryable],
          [failureClass, retryable],
          `An answer of status ${status}`,
        )
        requireEqual(failure.status, status, 'The status that is kept')
      }
    },
  ),
  checkAbility('connection', 'says how long it was asked to wait', async (harness) => {
    const failure = await callForFailure(harness, { type: 'refusal', status: 429, retryAfterSeconds: 7 })
    requireEqual(failure.retryAfterMs, 7000, 'The wait that was asked for, in milliseconds')
  }),
  checkAbility('connection', 'takes no page for a reply', async (harness) => {
    const failure = await callForFailure(harness, { type: 'page' })
    require(failure.class === 'protocol' ||
      failure.class ===
        'truncated', `a page is not a reply, so that the failure is protocol or truncated, not ${failure.class}`)
    require(!failure.message.includes('Log in'), 'nothing of the page is in the message')
  }),
  checkAbility('connection', 'says that no server could be reached', async (harness) => {
    const failure = await callForFailure(harness, { type: 'nobody' })
    requireEqual([failure.class, failure.retryable], ['network', true], 'The failure')
  }),
  checkAbility('connection', 'tells of a refusal in one bounded line, without the key', async (harness) => {
    const { secret } = harness
    for (const status of [400, 401, 500]) {
      const failure = await callForFailure(harness, { type: 'refusal', status })
      require(failure.message.length < 1000 &&
        !failure.message.includes('\n'), 'a message is one line, and not a long one')
      if (secret !== undefined)
        require(!writeOut(failure).includes(secret), 'the key is nowhere in the failure')
    }
  }),
]

/** Longer than any adapter waits. */
const foreverMs = 30 * 24 * 3600 * 1000

async function checkCuts(
  harness: ModelHarness,
  ending: 'end' | 'break',
  classes: readonly string[],
): Promise<void> {
  const whole = await playOnStage(harness, [replying(replyWithCall)], ({ model }) =>
    callModel(model, toolRequest),
  )
  const { proof } = harness.measure(replyWithCall)
  for (let events = 0; events < proof; events++) {
    const what = `a reply of which ${events} of ${proof} events came`
    const scene = replying(replyWithCall, { events, ending })
    const { signals, failure } = await playOnStage(harness, [scene], ({ model }) =>
      callModel(model, toolRequest),
    )
    require(failure !== undefined, `${what} fails`)
    require(classes.includes(failure.class), `${what} is ${classes.join(' or ')}, not ${failure.class}`)
    require(failure.retryable, `${what} may be tried again`)
    require(!signals.some(({ type }) => type === 'model_finished'), `${what} has no end`)
    const calls = signals.filter(({ type }) => type === 'model_tool_request')
    const all = whole.signals.filter(({ type }) => type === 'model_tool_request')
    requireEqual(calls, all.slice(0, calls.length), `The calls of ${what}`)
  }
}

/** How a model ends that does not get to the end of its reply. */
export const endingCases: readonly ModelContractCase[] = [
  checkAbility(
    'connection',
    'fails, to be tried again, wherever a reply ends before its proof, and requests no call that was cut',
    (harness) => checkCuts(harness, 'end', ['truncated', 'protocol']),
  ),
  checkAbility('connection', 'fails, to be tried again, wherever the connection breaks', (harness) =>
    checkCuts(harness, 'break', ['network', 'truncated', 'protocol']),
  ),
  checkAbility(
    'connection',
    'gives up an answer that does not begin, by the clock that it is lent',
    async (harness) => {
      await playOnStage(harness, [{ type: 'mute' }], async (stage) => {
        const clock = manualClock()
        const pending = callModel(stage.model, plainRequest, { clock })
        await stage.begun(0)
        clock.advance(foreverMs)
        const { failure } = await pending
        requireEqual([failure?.class, failure?.retryable], ['timeout', true], 'The failure')
        await stage.closed(0)
        requireEqual(clock.pending, 0, 'The number of timers that still wait')
      })
    },
  ),
  checkAbility(
    'connection',
    'gives up a reply that falls silent, by the clock that it is lent',
    async (harness) => {
      const { proof } = harness.measure(spokenReply)
      await playOnStage(
        harness,
        [replying(spokenReply, { events: proof - 1, ending: 'stall' })],
        async (stage) => {
          let received = ''
          const { failure, clock } = await callModel(stage.model, plainRequest, {
            onSignal(signal, _, lent) {
              if (signal.type !== 'model_text') return
              received += signal.text
              if (received === spokenReply.text?.join('')) setImmediate(() => lent.advance(foreverMs))
            },
          })
          requireEqual([failure?.class, failure?.retryable], ['timeout', true], 'The failure')
          await stage.closed(0)
          requireEqual(clock.pending, 0, 'The number of timers that still wait')
        },
      )
    },
  ),
  checkModel('leaves no timer running', async (harness) => {
    const broken: readonly Scene[] = [replying(spokenReply, { events: 1 }), { type: 'refusal', status: 500 }]
    const scenes = [replying(spokenReply), ...(harness.lacks?.includes('connection') ? [] : broken)]
    for (const scene of scenes) {
      await playOnStage(harness, [scene], async ({ model }) => {
        const { clock } = await callModel(model, plainRequest)
        await waitUntil(() => clock.pending === 0, 'no timer is left behind a call')
      })
    }
  }),
  checkAbility(
    'connection',
    'closes the connection when it is given up before the answer',
    async (harness) => {
      await playOnStage(harness, [{ type: 'mute' }], async (stage) => {
        const clock = manualClock()
        let reports = 0
        const count = (): void => void reports++
        const subscription = stage.model
          .stream(plainRequest, { clock })
          .subscribe({ next: count, error: count, complete: count })
        await stage.begun(0)
        subscription.unsubscribe()
        requireEqual(clock.pending, 0, 'The number of timers that still wait')
        await stage.closed(0)
        requireEqual(reports, 0, 'The number of reports after that')
      })
    },
  ),
  checkAbility(
    'connection',
    'closes the connection when it is given up at any signal, and reports nothing more',
    async (harness) => {
      const { proof } = harness.measure(replyWithCall)
      const events = proof - 1
      // A connection that stays open brings no more than this; and the counts, at times, come with its end only.
      const cut = await playOnStage(harness, [replying(replyWithCall, { events })], ({ model }) =>
        callModel(model, toolRequest),
      )
      const last = cut.signals.findLastIndex(({ type }) => type !== 'model_usage')
      require(last > 0, 'a reply is reported while it streams')
      await playOnStage(harness, [replying(replyWithCall, { events, ending: 'stall' })], async (stage) => {
        for (let count = 1; count <= last + 1; count++) {
          const { signals, clock } = await callModel(stage.model, toolRequest, { count })
          await stage.closed(count - 1)
          requireEqual(signals, cut.signals.slice(0, count), `The signals up to signal ${count}`)
          requireEqual(clock.pending, 0, 'The number of timers that still wait')
        }
      })
    },
  ),
]
