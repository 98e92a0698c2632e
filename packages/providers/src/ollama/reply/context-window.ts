import type { WireRequest } from '../client/wire.ts'

// How many tokens at the very front the server keeps when it cuts a prompt.
const keptTokens = 4
// Hardly a text has fewer bytes than this to a token; the prompt of a request that fits its window has fewer in all.
const bytesPerTokenMin = 2.5

/**
 * Returns whether the server answered a prompt that it had cut to fit. Servers since 2025 refuse instead, as the
 * request asks. Older ones leave only the token count as a sign: it equals the window, or the half of it that some
 * servers cut to. A prompt that was not cut may also have that half, so then its text must be long too.
 */
export function promptWasCut(body: WireRequest, promptTokens: number | undefined): boolean {
  const window = contextTokensOf(body)
  if (body.truncate || promptTokens === undefined || window === undefined) return false
  if (promptTokens === window) return true
  const halfWindow = window - Math.floor((window - keptTokens) / 2)
  return promptTokens === halfWindow && promptBytes(body) > bytesPerTokenMin * window
}

/** The context that a request asked for, in tokens. */
export function contextTokensOf({ options }: WireRequest): number | undefined {
  const window = options['num_ctx']
  return typeof window === 'number' ? window : undefined
}

/** The context that the server has, as far as one can tell: one that reads a longer prompt does as it likes (a cloud does). */
export function contextTokensAt(body: WireRequest, promptTokens: number | undefined): number | undefined {
  const window = contextTokensOf(body)
  return window !== undefined && promptTokens !== undefined && promptTokens > window ? undefined : window
}

function promptBytes({ messages, tools }: WireRequest): number {
  const texts = messages.map(({ content, thinking = '', tool_calls = [] }) =>
    [content, thinking, ...tool_calls.map((call) => JSON.stringify(call.function))].join(''),
  )
  return new TextEncoder().encode(texts.join('') + JSON.stringify(tools ?? [])).length
}
