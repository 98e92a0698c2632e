import type { PendingApproval, Run, RunResult, RuntimeEvent } from '@tallystick/core'
import { option, requireOptions, tallyCalls } from '@tallystick/core/internal'
import type { StandingOptions } from '@tallystick/core/vocabulary'
import { InvalidArgumentError } from '@commander-js/extra-typings'
import { parseStanding, readAccountName } from '../command/arguments.ts'
import { type CommandContext, printJson, hidePassword, type View } from '../command/context.ts'
import { CommandError, exitCodes } from '../command/exit-code.ts'
import {
  formatAfterwards,
  formatContinuation,
  type MetLimit,
  type StoppedRun,
} from '../command/next-commands.ts'
import { toOneLine, formatJson, formatTally, formatUsage, wrapLines } from '../command/text.ts'
import type { Output } from '../terminal/output.ts'
import { keepAlive } from '../terminal/wait.ts'
import { createRunPrinter } from '../view/events.ts'

/** Rows of the terminal for the question and the answer. */
const rowsKept = 4

/** So that the question fits one line. */
const maxNameCharacters = 25

/** Recorded with decisions of this prompt. */
const via = 'prompt'

/**
 * Asks the person at the terminal about a call that waits. Shows its whole canonical input, page by page. Only an answer
 * after the last page approves the call, and nothing that was typed before. Ctrl-C and Ctrl-D leave it undecided.
 */
export async function askForApproval(person: Output, approval: PendingApproval): Promise<ApprovalChoice> {
  const { columns, rows } = person.size()
  const { name, toolCallId, input, reason, approvers } = approval
  const because = reason === undefined ? '' : `Reason: ${toOneLine(reason, Infinity)}\n`
  // The input is printed last, and nothing before it takes more than one line: no reason can look like an input.
  const call = `Approval of ${toOneLine(name, Infinity)}\nCall: ${toolCallId}\n${because}Input: ${formatJson(input)}`
  // An approval that is one of several can cover no later call.
  const choices = `[y]es, ${approvers === undefined ? '[a]lways, ' : ''}[n]o, [l]ater`
  const lines = wrapLines(call, columns)
  const pageRows = Math.max(1, rows - rowsKept)
  person.reset()
  for (let shown = 0; ;) {
    const page = lines.slice(shown, shown + pageRows)
    if (page.length > 0) person.write(`${page.join('\n')}\n`)
    shown += page.length
    const isLast = shown >= lines.length
    const answer = await person.ask(
      isLast
        ? `Run ${toOneLine(name, maxNameCharacters)} with this input? ${choices}: `
        : `-- ${shown} of ${lines.length} lines. Enter shows more, [n]o, [l]ater: `,
    )
    if (isLast && answer !== undefined && /^y(es)?$/i.test(answer)) return { kind: 'approve', via }
    if (isLast && answer !== undefined && approvers === undefined && /^a(lways)?$/i.test(answer)) {
      const standing = await askForStanding(person)
      return standing ? { kind: 'approve', via, standing } : { kind: 'later' }
    }
    if (answer === undefined || /^l(ater)?$/i.test(answer)) return { kind: 'later' }
    if (/^no?$/i.test(answer)) {
      const why = await person.ask('Why not? The model reads it: ')
      return why === undefined
        ? { kind: 'later' }
        : { kind: 'deny', via, reason: why || 'No reason was given.' }
    }
  }
}

/** Asks which later calls of the tool run without a question. `undefined` after Ctrl-C or Ctrl-D. */
async function askForStanding(person: Output): Promise<StandingOptions | undefined> {
  for (;;) {
    const answer = await person.ask('Which later calls, for how long? session=8h, equal_input=8h: ')
    if (answer === undefined) return undefined
    try {
      return parseStanding(answer)
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error
      person.write(`${error.message}\n`)
    }
  }
}

/**
 * A person's answer about a call: run it, do not, or decide later, which leaves the run suspended. `via` says how they
 * answered, for the record.
 */
export type ApprovalChoice =
  | { readonly kind: 'approve'; readonly via: string; readonly standing?: StandingOptions }
  | { readonly kind: 'deny'; readonly via: string; readonly reason: string }
  | { readonly kind: 'later' }

interface DriveRunOptions {
  /** Who decides, for the record. */
  readonly by: string
  /** Asked for each call that waits, one at a time. */
  readonly choose: (approval: PendingApproval) => ApprovalChoice | Promise<ApprovalChoice>
  /** Gets each event of the run once, in order, from the first. The next one waits for it. */
  readonly watch: (event: RuntimeEvent) => void | Promise<void>
}

/**
 * Waits until a run rests, decides about the calls that wait, and so on until it is done or something is left for later.
 * Throws a `CommandError` (`refused`) if the run takes none of the decisions.
 */
export async function driveRun(run: Run, { by, choose, watch }: DriveRunOptions): Promise<RunResult> {
  let watchedSeq = 0
  for (;;) {
    for await (const event of run.after(watchedSeq)) {
      watchedSeq = event.seq
      await watch(event)
    }
    const result = await run.result
    if (result.status === 'done') return result
    const decisions: (() => ReturnType<Run['approve']>)[] = []
    for (const approval of result.pendingApprovals) {
      const choice = await choose(approval)
      if (choice.kind === 'approve') {
        const { kind: _, ...approving } = choice
        decisions.push(() => run.approve(approval, { by, ...approving }))
      }
      if (choice.kind === 'deny') {
        const { via, reason } = choice
        decisions.push(() => run.deny(approval, { by, via, reason }))
      }
    }
    if (decisions.length === 0) return result
    const answers = await Promise.all(decisions.map((send) => send()))
    const refusals = answers.flatMap((answer) => (answer.accepted ? [] : [answer.message]))
    if (refusals.length === answers.length) {
      throw new CommandError('refused', `The run took no decision. ${refusals.join(' ')}`)
    }
  }
}

const signals = ['SIGINT', 'SIGTERM'] as const

/** On the first stop signal, drains or cancels the run; on the second, ends the process. `off` stops listening. */
export function stopOnSignal(
  { say }: CommandContext,
  { drain, cancel }: Pick<InteractiveRunOptions, 'drain' | 'cancel'>,
): { readonly asked: boolean; readonly off: () => void } {
  const stop = {
    asked: false,
    off: () => signals.forEach((signal) => process.off(signal, onSignal)),
  }
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stop.asked) process.exit(exitCodes.interrupted)
    stop.asked = true
    const cancels = signal === 'SIGINT' && cancel !== undefined
    say(
      cancels
        ? '\nCancelling: what was finished is kept. Press Ctrl-C again to end at once.'
        : '\nStopping: nothing more is started, and what is in flight may end. Press Ctrl-C again to end at once.',
    )
    const act = cancels ? cancel : drain
    // The run's own result also has the failure.
    act().catch(() => undefined)
  }
  signals.forEach((signal) => process.on(signal, onSignal))
  return stop
}

export interface InteractiveRunOptions {
  /** Path of the ledger, or its connection string, as the user wrote it. */
  readonly ledgerPath: string
  /** Approves every call that waits for it. */
  readonly yes?: boolean | undefined
  /** Denies every call that waits for an approval, with this reason. */
  readonly deny?: string | undefined
  /** Who decides, for the record. Default: the name of the account. */
  readonly by?: string | undefined
  /** Stops the run: nothing more is started, and effects in flight may end. Called on Ctrl-C. */
  readonly drain: () => Promise<unknown>
  /** Cancels the run. If given, Ctrl-C calls it instead of `drain`; SIGTERM always calls `drain`. */
  readonly cancel?: () => Promise<unknown>
  /** With `--json`, prints the events, one JSON object a line: the result is then the last line. */
  readonly eventLines?: boolean
  /** Prints the answer, if there is one, and shows the run on stderr. */
  readonly answer?: boolean | undefined
  /** Options that the command that continues the run also needs. */
  readonly resumeArguments?: readonly string[]
  /** Events up to this `seq` are not shown. Default 0: all are. */
  readonly shownSeq?: number
}

const anyContext = option.valueThat('a context that createProcessContext made', (value) => {
  const { print, say, view, aside } = Object(value) as Partial<CommandContext>
  const views = [view, aside].every((each) => typeof each?.write === 'function')
  return typeof print === 'function' && typeof say === 'function' && views
})
const anyRun = option.valueThat('a run, such as runtime.run(agent, input) returns', (value) => {
  const { after, result } = Object(value) as Partial<Run>
  return typeof after === 'function' && option.isThenable(result)
})
const anyOptions = option.valueThat(
  'the options, as in { ledgerPath, drain: () => runtime.drain() }',
  (value) => {
    const { ledgerPath, drain } = Object(value) as Partial<InteractiveRunOptions>
    return typeof ledgerPath === 'string' && typeof drain === 'function'
  },
)

/**
 * Shows a run as it proceeds, and decides about its approvals by the options or by asking the person at the terminal. Without
 * either, the run stays suspended. Ends with the tally and the next commands, or with one JSON object on stdout. Rejects
 * with a `ConfigurationError` for an invalid context, run or options.
 */
export async function runInteractively(
  context: CommandContext,
  run: Run,
  options: InteractiveRunOptions,
): Promise<RunResult> {
  requireOptions('runInteractively', anyContext, context, 'the context')
  requireOptions('runInteractively', anyRun, run, 'the run')
  requireOptions('runInteractively', anyOptions, options)
  const stopped = await watchRun(context, run, options)
  await reportStopped(context, [stopped], options)
  return stopped.result
}

/** Prints the next commands after the last of the runs, and the results in the requested form. */
export async function reportStopped(
  context: CommandContext,
  runs: readonly [StoppedRun, ...StoppedRun[]],
  {
    ledgerPath,
    answer,
    resumeArguments = [],
  }: Pick<InteractiveRunOptions, 'ledgerPath' | 'answer' | 'resumeArguments'>,
): Promise<void> {
  const { json, printData, programName } = context
  const last = runs.at(-1) ?? runs[0]
  const { result } = last
  const place = { programName, ledgerPath, resumeArguments }
  chooseView(context, answer).write(
    result.status === 'done' ? formatAfterwards(result.runId, place) : formatContinuation(last, place),
  )
  if (json) {
    const data = runs.map((each) => toResultData(each.result, ledgerPath))
    await printJson(
      context,
      data.reduceRight((parent, each) => ({ ...each, parent })),
    )
  } else if (answer === true && result.status === 'done') await printData(`${result.text}\n`)
}

export function chooseView({ json, view, aside }: CommandContext, answer: boolean | undefined): View {
  return answer === true && !json ? aside : view
}

/** Does what `runInteractively` does, up to the tally. */
export async function watchRun(
  context: CommandContext,
  run: Run,
  options: InteractiveRunOptions,
): Promise<StoppedRun> {
  const { by = readAccountName(), shownSeq = 0, answer, eventLines = false } = options
  const view = chooseView(context, answer)
  const show = createRunPrinter(view)
  const halves: RuntimeEvent[] = []
  let metLimit: MetLimit | undefined
  const watch = async (event: RuntimeEvent): Promise<void> => {
    if (event.type === 'tool_request_ready' || event.type === 'tool_result') halves.push(event)
    if (event.type === 'limit_reached' && event.policy === 'ask') metLimit = event
    if (event.type === 'limit_raised') metLimit = undefined
    if (event.seq <= shownSeq) return
    show(event)
    if (eventLines && context.json) await printJson(context, event)
  }
  const stop = stopOnSignal(context, options)
  const choose: DriveRunOptions['choose'] = (approval) => {
    const { yes, deny } = options
    if (stop.asked) return { kind: 'later' }
    if (yes === true) return { kind: 'approve', via: '--yes' }
    if (deny !== undefined) return { kind: 'deny', via: '--deny', reason: deny }
    return context.person ? askForApproval(context.person, approval) : { kind: 'later' }
  }
  const result = await keepAlive(() => driveRun(run, { by, choose, watch })).finally(stop.off)
  const known =
    result.status === 'done' && result.seq <= shownSeq
      ? `Run ${result.runId} was done already: ${result.reason}. Nothing was left to do.\n`
      : ''
  const tally = `${known}Tally: ${formatTally(tallyCalls(halves))}. Tokens: ${formatUsage(result.usage)}.\n`
  view.write(`\n${tally}`)
  return { result, ...(metLimit !== undefined && { metLimit }) }
}

/** A result for programs: missing values are null. */
function toResultData(result: RunResult, ledger: string): object {
  const { runId, agent, status, reason = null, detail = null, text, output = null } = result
  const { turns, toolCalls, children, usage, costUsd = null, pendingApprovals, deferredCalls, seq } = result
  return {
    runId,
    agent,
    status,
    reason,
    detail,
    text,
    output,
    turns,
    toolCalls,
    children,
    usage,
    costUsd,
    seq,
    ledger: hidePassword(ledger),
    pendingApprovals,
    deferredCalls,
  }
}
