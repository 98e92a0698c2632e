import type { client } from '../options/client-library.ts'
import type { Timers } from '../../built-in/timers.ts'
import type { ToolChanges } from '../listing/tool-changes.ts'
import type { McpHooks, SamplingLimits } from '../options/hooks.ts'
import type { LearnedSecrets } from '../options/known-secrets-of.ts'
import type { McpServer } from '../options/server-options.ts'
import type { Environment } from '../options/child-environment.ts'
import type { TraceparentOf } from '../../execution/traceparent.ts'
import type { ProcessGuard } from '../../execution/process-guard.ts'

/** One server of a configuration. */
export interface NamedServer {
  readonly name: string
  readonly options: McpServer
  readonly secrets: LearnedSecrets
  /** Resolves with what the redirect of OAuth came back with. Absent where the user gave no such function. */
  readonly askUser?: () => Promise<URLSearchParams>
}

/** Waits between attempts to reconnect. */
export interface Backoff {
  readonly baseMs: number
  readonly capMs: number
  readonly maxAttempts: number
}

/** What the connections of a manager share. */
export interface SharedParts {
  readonly sdk: typeof client
  readonly hooks: McpHooks
  readonly sampling: SamplingLimits
  readonly traceparent: TraceparentOf | undefined
  readonly timers: Timers
  readonly random: () => number
  readonly guard: ProcessGuard
  readonly environment: Environment
  readonly backoff: Backoff
  readonly onChange: (changes: ToolChanges) => void
}
