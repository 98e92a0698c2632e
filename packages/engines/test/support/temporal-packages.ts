import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '../../../../.runtimes')
const installLine = 'scripts/testing/install-engines.sh'

/** Whether the tests of the workflow and the activity are left out, which this says; with TALLYSTICK_ENGINES=all they fail instead. */
export const lacksTemporal: boolean =
  !existsSync(join(folder, 'node_modules/@temporalio/testing')) && process.env['TALLYSTICK_ENGINES'] !== 'all'
if (lacksTemporal) console.warn(`Tests on Temporal are left out. Its worker takes 260 MB: ${installLine}`)

/** An activity's surroundings without a server. */
export interface MockEnvironment {
  run<Args extends unknown[], Result>(
    activity: (...args: Args) => Promise<Result>,
    ...args: Args
  ): Promise<Result>
  cancel(): void
  on(event: 'heartbeat', listener: () => void): void
}

/** What the tests use of the packages, which no `pnpm install` brings. */
interface TemporalPackages {
  readonly MockActivityEnvironment: new (info?: { readonly heartbeatTimeoutMs?: number }) => MockEnvironment
  readonly DefaultLogger: new (level: 'WARN') => object
  readonly Runtime: { install(options: { readonly logger: object }): unknown }
  readonly bundleWorkflowCode: (options: {
    readonly workflowsPath: string
    readonly logger: object
  }) => Promise<{ readonly code: string }>
  readonly Worker: {
    runReplayHistory(options: { readonly workflowBundle: unknown }, history: unknown): Promise<void>
  }
}

export function loadTemporal(): TemporalPackages {
  const load = createRequire(join(folder, 'package.json'))
  return { ...load('@temporalio/testing'), ...load('@temporalio/worker') } as TemporalPackages
}
