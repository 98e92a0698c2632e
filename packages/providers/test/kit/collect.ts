import { ProviderError, type Model, type ModelRequest } from '@tallystick/core'
import { type ModelSignal } from '@tallystick/core/vocabulary'
import { ManualClock } from './manual-clock.ts'

/** What one call of a model came to. Exactly one of `completed` and `failure`. */
export interface Outcome {
  readonly signals: readonly ModelSignal[]
  readonly completed: boolean
  readonly failure: ProviderError | undefined
}

export const request: ModelRequest = {
  instructions: 'Be brief.',
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }],
  tools: [],
  toolChoice: { type: 'auto' },
  parallelToolCalls: true,
}

/** Subscribes and waits for the end. An error that is no `ProviderError` fails the test. */
export function collect(
  model: Model,
  asked: ModelRequest = request,
  clock = new ManualClock(),
): Promise<Outcome> {
  const signals: ModelSignal[] = []
  return new Promise((resolve, reject) => {
    model.stream(asked, { clock }).subscribe({
      next: (signal) => signals.push(signal),
      complete: () => resolve({ signals, completed: true, failure: undefined }),
      error: (failure: unknown) => {
        if (failure instanceof ProviderError) resolve({ signals, completed: false, failure })
        else reject(failure)
      },
    })
  })
}

export function finished(signals: readonly ModelSignal[]) {
  return signals.find((signal) => signal.type === 'model_finished')
}

export function callsOf(signals: readonly ModelSignal[]) {
  return signals.flatMap((signal) => (signal.type === 'model_tool_request' ? [signal.call] : []))
}

/** Text and reasoning of each part, as the deltas put together. */
export function deltasOf(signals: readonly ModelSignal[]): Map<number, string> {
  const texts = new Map<number, string>()
  for (const signal of signals) {
    if (signal.type !== 'model_text' && signal.type !== 'model_reasoning') continue
    texts.set(signal.part, (texts.get(signal.part) ?? '') + signal.text)
  }
  return texts
}

export function lastUsage(signals: readonly ModelSignal[]) {
  return signals.findLast((signal) => signal.type === 'model_usage')?.usage
}

/** Tokens of the conversation after the reply, where they are reported apart from the billed ones. */
export function lastContext(signals: readonly ModelSignal[]) {
  return signals.findLast((signal) => signal.type === 'model_usage')?.contextTokens
}

export function textShown(signals: readonly ModelSignal[]): string {
  return signals.map((signal) => (signal.type === 'model_text' ? signal.text : '')).join('')
}
