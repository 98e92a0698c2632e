import type { ToolContext } from './executor.ts'

/**
 * Returns the `traceparent` header (W3C Trace Context) that a call sends along, so that the service which answers continues the
 * trace: `(call) => traceparentOf(ledger, call)`, with `traceparentOf` of `@tallystick/otel`. `undefined` sends none.
 */
export type TraceparentOf = (
  call: Pick<ToolContext, 'runId' | 'toolCallId'>,
) => string | undefined | Promise<string | undefined>

/** Returns the header of a call; `undefined` where the function fails or returns another text: no trace stops a call. */
export async function traceparentFor(
  traceparentOf: TraceparentOf | undefined,
  { runId, toolCallId }: Pick<ToolContext, 'runId' | 'toolCallId'>,
): Promise<string | undefined> {
  try {
    const given = await traceparentOf?.({ runId, toolCallId })
    return given !== undefined && /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/.test(given)
      ? given
      : undefined
  } catch {
    return undefined
  }
}
