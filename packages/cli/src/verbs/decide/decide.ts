import type { Command } from 'commander'
import type { JsonObject } from '@tallystick/core'
import { addVerb, type Done } from '../../command/add-verb.ts'
import type { CommandContext } from '../../command/command-context.ts'
import { filledText, jsonObject, positiveNumber } from '../../command/parse-args.ts'

/** Adds what leaves a command for whoever drives a run. */
export function addDecideVerbs(program: Command, context: CommandContext, done: Done): void {
  addApprovals(program, context, done)
  addVerb(program, 'settle', 'give the result of a tool call that goes on outside')
    .argument('<run>', 'id of the run')
    .argument('<call>', 'id of the tool call, an unambiguous end of it, or its receipt')
    .option('--result <text>', 'what it came to')
    .option('--failed <text>', 'what went wrong')
    .action(
      async (ledger: string, run: string, call: string, options: { result?: string; failed?: string }) => {
        const { settle } = await import('./settle.ts')
        done(await settle(context, { ledger, run, call, ...options }))
      },
    )
  addVerb(program, 'raise', 'raise a limit of a run, such as one that it is suspended at')
    .argument('<run>', 'id of the run')
    .argument('<limit>', 'name of the limit, such as turnsMax')
    .argument('<max>', 'the new maximum', positiveNumber)
    .option('--by <name>', 'who raises it (default: the name of your account)', filledText)
    .action(async (ledger: string, ...rest: [string, string, number, { by?: string }]) => {
      const [run, limit, max, options] = rest
      const { raise } = await import('./raise.ts')
      done(await raise(context, { ledger, run, limit, max, ...options }))
    })
  addVerb(program, 'cancel', 'ask a run to stop')
    .argument('<run>', 'id of the run')
    .option('--by <name>', 'who asks (default: the name of your account)', filledText)
    .option('--reason <text>', 'why')
    .action(async (ledger: string, run: string, options: { by?: string; reason?: string }) => {
      const { cancel } = await import('./cancel.ts')
      done(await cancel(context, { ledger, run, ...options }))
    })
}

function addApprovals(program: Command, context: CommandContext, done: Done): void {
  const addDecision = (name: string, description: string): Command =>
    addVerb(program, name, description)
      .argument('<run>', 'id of the run')
      .argument('<call>', 'id of the tool call, or an unambiguous end of it')
      .option('--by <name>', 'who decides (default: the name of your account)', filledText)

  addDecision('approve', 'approve a tool call that waits for it')
    .option('--input <json>', 'run it with this input instead', jsonObject)
    .action(
      async (ledger: string, run: string, call: string, options: { by?: string; input?: JsonObject }) => {
        const { approve } = await import('./approve.ts')
        done(await approve(context, { ledger, run, call, ...options }))
      },
    )
  addDecision('deny', 'deny a tool call that waits for an approval')
    .requiredOption('--reason <text>', 'why; the model reads it')
    .action(async (ledger: string, run: string, call: string, options: { by?: string; reason: string }) => {
      const { deny } = await import('./deny.ts')
      done(await deny(context, { ledger, run, call, ...options }))
    })
}
