import { omitUndefined } from '../../values/json.ts'
import { digestTextsByDefault } from '../../values/digest.ts'
import { outsideCommand, type OutsideCommand } from '../../events/commands.ts'
import { numberFrom, requireOptions } from '../../values/option.ts'
import { requireTextId } from '../../ledger/queries.ts'
import { faultOf } from '../../values/schema.ts'
import type { ForkOptions } from '../fork/fork.ts'
import { noOptions } from '../commands/no-options.ts'
import { suspendedRuns } from '../reading/listed-runs.ts'
import { digestOfHost } from '../../values/host.ts'
import {
  requireForkOptions,
  requireResumeOptions,
  requireSettling,
  requireSendOptions,
  requireRunOptions,
  requireRuntimeOptions,
} from './runtime-options-check.ts'
import { malformed } from './run.ts'
import type { InContext, ResumeOptions, Runtime, RuntimeOptions, SettledResult } from './runtime.ts'
import { RuntimeRuns } from './runtime-runs.ts'
import { runtimeSession } from './runtime-session.ts'

/** Puts a runtime together. */
export function createRuntime(options: RuntimeOptions): Runtime {
  requireRuntimeOptions(options)
  digestTextsByDefault(digestOfHost)
  const { ledger } = options
  const runs = new RuntimeRuns(options)
  const { coordinators } = runs
  return {
    ledger,
    run(agent, input, ...[own = {}]) {
      requireRunOptions(own)
      return runs.handle(runs.start(agent, input, own))
    },
    session: (id) => runtimeSession(id, ledger, runs),
    resume<Output>(runId: string, own: ResumeOptions<Output> = {}) {
      requireTextId('resume', runId)
      requireResumeOptions(own)
      const coordinator = coordinators.coordinatorFor(runId, own)
      if (own.takeOver) coordinator.takeOver()
      coordinator.drive({ withChildren: true })
      return runs.handle<Output>({ coordinator }, own.agent)
    },
    fork<Output>(source: string, own: InContext<ForkOptions>) {
      requireForkOptions(own)
      return runs.handle<Output>({ coordinator: runs.fork(source, own) })
    },
    send: (runId, command, own = {}) =>
      runs.answer('send', runId, async () => {
        requireTextId('send', runId)
        requireSendOptions(own)
        const { key, context } = own
        const fault = faultOf(outsideCommand, command)
        if (fault) return malformed('send', { path: fault.path, what: `is malformed: ${fault.what}` })
        return await coordinators.coordinatorFor(runId, { context }).send(command, key)
      }),
    settle: (runId, toolCallId, result, own = {}) =>
      runs.answer('settle', runId, async () => {
        requireSettling(runId, toolCallId, result, own)
        const { by, reason } = own
        return await coordinators
          .coordinatorFor(runId, own)
          .send({ type: 'settle', toolCallId, ...settledResult(result), ...omitUndefined({ by, reason }) })
      }),
    suspended(...given: readonly unknown[]) {
      requireOptions('suspended', noOptions, given[0])
      return suspendedRuns(ledger)
    },
    interrupted(...given: readonly unknown[]) {
      requireOptions('interrupted', noOptions, given[0])
      return runs.interrupted()
    },
    async drain(graceMs) {
      if (graceMs !== undefined) requireOptions('drain', numberFrom(0), graceMs, 'graceMs')
      return await coordinators.drain(graceMs)
    },
    idle: () => coordinators.idle(),
  }
}

/** What a caller says of how a deferred call ended, as the command says it. */
function settledResult(
  result: SettledResult,
): Pick<Extract<OutsideCommand, { type: 'settle' }>, 'outcome' | 'content'> {
  if (typeof result === 'string') return { outcome: 'success', content: [{ type: 'text', text: result }] }
  if ('failed' in result) return { outcome: 'failed', content: [{ type: 'text', text: result.failed }] }
  return { outcome: 'success', content: result }
}
