import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { runInteractively, chooseExitCode, exitCodes, createProcessContext } from '@tallystick/cli'
import type { CommandContext, ExitCode } from '@tallystick/cli'
import { createRuntime } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { chooseModel, playedBy } from './choose-model.ts'
import { openDemo } from './open-demo.ts'
import type { Options } from './options.ts'
import { readOptions } from './options.ts'
import { serveDemo } from './serve-demo.ts'
import { question } from './task.ts'

/** Milliseconds between two pieces of the loopback model's replies, so that a person can watch. */
const watchablePaceMs = 12

/** Runs the demo from its command line. Returns the exit code; errors go to stderr. */
export async function runDemo(words: readonly string[]): Promise<ExitCode> {
  const options = readOptions(words)
  if (typeof options === 'number') return options
  const context = { ...createProcessContext(options.json), programName: 'npx -y pnpm@12 tallystick' }
  try {
    return await startRun(context, options)
  } catch (error) {
    context.say(`error: ${error instanceof Error ? error.message : String(error)}`)
    return chooseExitCode(error)
  }
}

async function startRun(context: CommandContext, options: Options): Promise<ExitCode> {
  const { ledger: ledgerPath, model } = options
  const modelId = chooseModel(context.environment, model)
  if (options.engine !== undefined) {
    // Only here: it brings clients of Postgres.
    const { runOnEngine } = await import('./engine-demo.ts')
    return await runOnEngine(context, { ...options, modelId })
  }
  mkdirSync(dirname(ledgerPath), { recursive: true })
  const ledger = sqliteLedger(ledgerPath)
  try {
    const demo = await openDemo({
      ledgerPath,
      modelId,
      paceMs: options.serve || process.stdout.isTTY ? watchablePaceMs : 0,
    })
    try {
      if (options.serve) {
        await serveDemo(context, { ledger, demo, modelId, port: options.port })
        return exitCodes.ok
      }
      context.view.write(`${playedBy(modelId)}\n`)
      const runtime = createRuntime({ ledger, agents: [demo.agent] })
      const drain = (): Promise<unknown> => runtime.drain()
      const run = runtime.run(demo.agent, question)
      const { reason } = await runInteractively(context, run, { ...options, ledgerPath, drain })
      return reason === 'model_failed' ? exitCodes.failed : exitCodes.ok
    } finally {
      await demo.close()
    }
  } finally {
    await ledger.close()
  }
}
