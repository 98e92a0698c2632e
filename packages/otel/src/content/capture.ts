/** Whether spans hold content. */
export interface ContentOption {
  /**
   * Whether spans hold messages, instructions, inputs and results. Default: as the environment variable
   * `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says; `false` without it.
   */
  readonly content?: boolean | undefined
}

const variable = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT'

/** The values of the variable that ask for content in spans; `true` is that of older instrumentations. */
const asking: ReadonlySet<string> = new Set(['span_only', 'span_and_event', 'true'])

/** Returns whether spans hold content. */
export function holdsContent({ content }: ContentOption): boolean {
  const { process } = globalThis as {
    readonly process?: { readonly env: Readonly<Record<string, string | undefined>> }
  }
  return content ?? asking.has((process?.env[variable] ?? '').toLowerCase())
}
