import { createRuntime, type Ledger } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import { startWorker } from '@tallystick/engines'
import type { VerifyCheckpointsOptions } from '@tallystick/ledger'
import { pollingEngine } from '@tallystick/engines/polling'
import { createServer, type Permission } from '@tallystick/server'
import { type Listening, serve } from '@tallystick/server/node'
import { readAccountName } from '../command/arguments.ts'
import type { CommandContext } from '../command/context.ts'
import { type Configured, createConfiguredRuntime } from '../drive/agents.ts'
import type { Door } from './door.ts'

/** What a page of the inspector is served with. */
export interface InspectorSetup {
  readonly ledger: Ledger
  /** Of the page. */
  readonly title: string
  /** True if the runs were read from exports. */
  readonly isImported: boolean
  /** What signed checkpoints are read from. */
  readonly checkpoints?: VerifyCheckpointsOptions | undefined
  /** Absent for a process that drives nothing: decisions go on record, for the process that continues the run. */
  readonly configured: Configured | undefined
  readonly may: readonly Permission[]
  /** Of whoever decides on the page. */
  readonly roles: readonly string[] | undefined
  /** Resumes the runs that no process drives. */
  readonly supervises: boolean
  readonly door: Door
  readonly port: number | undefined
  /** What someone reads whom the door does not let in. */
  readonly howToEnter: string
}

/** Serves the inspector on this machine, to those that the door lets in. */
export async function serveInspector(context: CommandContext, setup: InspectorSetup): Promise<Listening> {
  const {
    ledger,
    title,
    isImported,
    checkpoints,
    configured,
    may,
    roles,
    supervises,
    door,
    port,
    howToEnter,
  } = setup
  const report = (error: unknown, what: string): void =>
    context.say(`error: ${what}: ${error instanceof Error ? error.message : String(error)}`)
  const runtime = configured
    ? createConfiguredRuntime(ledger, configured, { report })
    : createRuntime({ ledger })
  const server = createServer({
    runtime,
    agents: configured?.named ?? [],
    context: configured && (() => configured.context),
    drives: configured !== undefined,
    authorize: door.authorizeAs({
      name: readAccountName(),
      roles,
      sees: 'everything',
      // A replay asks no model and runs no tool, so it is allowed wherever agents are known.
      may: configured ? [...may, 'replay'] : may,
    }),
    basePath: door.basePath,
    inspector: { title, isImported },
    checkpoints,
    report,
  })
  const guarded = { ...server, fetch: door.guard(server, howToEnter) }
  const listening = await serve(guarded, omitUndefined({ port }))
  if (!supervises || configured === undefined) return listening
  const engine = pollingEngine({ ledger, report })
  const worker = await startWorker({ runtime, engine, context: configured.context })
  const close: Listening['close'] = async (graceMs = 5_000) => {
    const [results] = await Promise.all([listening.close(graceMs), worker.stop(graceMs)])
    return results
  }
  return { ...listening, close, [Symbol.asyncDispose]: async () => void (await close()) }
}
