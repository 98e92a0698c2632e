import type { ProviderError } from '@tallystick/core'
import type { ModelFailure } from '@tallystick/core/vocabulary'
import { callModel, onStage } from './call-outcome.ts'
import type { ModelContractCase, ModelHarness, Scene } from './contract-case.ts'
import { require, requireEqual } from './expectation.ts'
import { plainRequest, replying, spokenReply } from './samples.ts'

async function failureOf(harness: ModelHarness, scene: Scene): Promise<ProviderError> {
  return onStage(harness, [scene, replying(spokenReply)], async (stage) => {
    const { signals, failure } = await callModel(stage.model, plainRequest)
    require(failure !== undefined, 'the call fails')
    requireEqual(signals, [], 'What was reported before')
    require(stage.bodies.length <= 1, 'the adapter tries once, and leaves it to the runtime to try again')
    return failure
  })
}

/** What a call fails with, by the status of the answer. */
const byStatus: readonly (readonly [number, ModelFailure['class'], retryable: boolean])[] = [
  [400, 'invalid_request', false],
  [401, 'authentication', false],
  [403, 'permission', false],
  [404, 'not_found', false],
  [429, 'rate_limited', true],
  [500, 'server', true],
  [503, 'overloaded', true],
]

async function checkStatuses(harness: ModelHarness): Promise<void> {
  for (const [status, failureClass, retryable] of byStatus) {
    const failure = await failureOf(harness, { type: 'refusal', status })
    requireEqual(
      [failure.class, failure.retryable],
      [failureClass, retryable],
      `An answer of status ${status}`,
    )
    requireEqual(failure.status, status, 'The status that is kept')
  }
}

async function checkWait(harness: ModelHarness): Promise<void> {
  const failure = await failureOf(harness, { type: 'refusal', status: 429, retryAfterSeconds: 7 })
  requireEqual(failure.retryAfterMs, 7000, 'The wait that was asked for, in milliseconds')
}

async function checkPage(harness: ModelHarness): Promise<void> {
  const failure = await failureOf(harness, { type: 'page' })
  require(failure.class === 'protocol' ||
    failure.class ===
      'truncated', `a page is no reply, so that the failure is protocol or truncated, not ${failure.class}`)
  require(!failure.message.includes('Log in'), 'nothing of the page is in the message')
}

async function checkUnreachable(harness: ModelHarness): Promise<void> {
  const failure = await failureOf(harness, { type: 'nobody' })
  requireEqual([failure.class, failure.retryable], ['network', true], 'The failure')
}

async function checkWords(harness: ModelHarness): Promise<void> {
  const { secret } = harness
  for (const status of [400, 401, 500]) {
    const failure = await failureOf(harness, { type: 'refusal', status })
    require(failure.message.length < 1000 &&
      !failure.message.includes('\n'), 'a message is one line, and not a long one')
    if (secret !== undefined) require(!textOf(failure).includes(secret), 'the key is nowhere in the failure')
  }
}

/** Everything that a log of the error could show. */
function textOf(error: unknown, depth = 0): string {
  if (typeof error !== 'object' || error === null || depth > 4) return String(error)
  const fields = Object.getOwnPropertyNames(error).map((key) => (error as Record<string, unknown>)[key])
  return fields.map((field) => textOf(field, depth + 1)).join('\n')
}

/** What a model says when it is refused. */
export const failureCases: readonly ModelContractCase[] = [
  {
    promise: 'says by class and status what kind of refusal it met, after one attempt',
    needs: 'connection',
    run: checkStatuses,
  },
  { promise: 'says how long it was asked to wait', needs: 'connection', run: checkWait },
  { promise: 'takes no page for a reply', needs: 'connection', run: checkPage },
  { promise: 'says that no server could be reached', needs: 'connection', run: checkUnreachable },
  {
    promise: 'tells of a refusal in one bounded line, without the key',
    needs: 'connection',
    run: checkWords,
  },
]
