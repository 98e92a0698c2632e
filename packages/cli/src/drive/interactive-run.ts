import type { PendingApproval, Run, RunResult, RuntimeEvent } from '@tallystick/core'
import { option, requireOptions, tallyCalls } from '@tallystick/core/internal'
import { type CommandContext, shownLedger, type View } from '../command/context.ts'
import { CommandError, exitCodes } from '../command/exit-code.ts'
import { afterwards, continuation, type MetLimit, type StoppedRun } from '../command/next-commands.ts'
import { oneLine, prettyJson, tallyText, usageText, wrappedLines } from '../command/text.ts'
import type { Output } from '../terminal/output.ts'
import { keepAlive } from '../terminal/wait.ts'
import { runPrinter } from '../view/events.ts'
import { accountName } from './decide-call.ts'

/** Rows of the terminal that hold no part of the call: the question, and what is typed. */
const rowsKept = 4

/** The question takes one line of the terminal. */
const maxNameCharacters = 30

/** How a decision that is taken here came in. */
const via = 'prompt'

/**
 * Asks the person at the terminal about a call that waits, by its whole canonical input: page by page where it is
 * longer than the screen. Only an answer after the last page approves it, and nothing that was typed before. Ctrl-C
 * and Ctrl-D leave the call undecided.
 */
export async function askForApproval(person: Output, approval: PendingApproval): Promise<ApprovalChoice> {
  const { columns, rows } = person.size()
  const lines = wrappedLines(callText(approval), columns)
  const pageRows = Math.max(1, rows - rowsKept)
  person.reset()
  for (let shown = 0; ;) {
    const page = lines.slice(shown, shown + pageRows)
    if (page.length > 0) person.write(`${page.join('\n')}\n`)
    shown += page.length
    const choice = await (shown < lines.length
      ? askForMore(person, `${shown} of ${lines.length} lines`)
      : askForDecision(person, approval.name))
    if (choice !== undefined) return choice
  }
}

/** The input is printed last, and nothing before it takes more than one line: no reason can look like an input. */
function callText({ name, toolCallId, input, reason }: PendingApproval): string {
  const because = reason === undefined ? '' : `Reason: ${oneLine(reason, Infinity)}\n`
  return `Approval of ${oneLine(name, Infinity)}\nCall: ${toolCallId}\n${because}Input: ${prettyJson(input)}`
}

/** Resolves with `undefined` where more is to be shown. */
async function askForMore(person: Output, seen: string): Promise<ApprovalChoice | undefined> {
  const answer = await person.ask(`-- ${seen}. Enter shows more, [n]o, [l]ater: `)
  return await choiceOf(person, answer)
}

/** Resolves with `undefined` for an answer that is not one of the choices. */
async function askForDecision(person: Output, name: string): Promise<ApprovalChoice | undefined> {
  const answer = await person.ask(
    `Run ${oneLine(name, maxNameCharacters)} with this input? [y]es, [n]o, [l]ater: `,
  )
  if (answer !== undefined && /^y(es)?$/i.test(answer)) return { kind: 'approve', via }
  return await choiceOf(person, answer)
}

async function choiceOf(person: Output, answer: string | undefined): Promise<ApprovalChoice | undefined> {
  if (answer === undefined || /^l(ater)?$/i.test(answer)) return { kind: 'later' }
  if (!/^no?$/i.test(answer)) return undefined
  const why = await person.ask('Why not? The model reads it: ')
  return why === undefined ? { kind: 'later' } : { kind: 'deny', via, reason: why || 'No reason was given.' }
}

/**
 * What a person says to a call that waits: run it, do not, or nothing for now, which leaves the run suspended. `via` is
 * how they said it, for the record.
 */
export type ApprovalChoice =
  | { readonly kind: 'approve'; readonly via: string }
  | { readonly kind: 'deny'; readonly via: string; readonly reason: string }
  | { readonly kind: 'later' }

/** Who is asked, and who watches, while a run is driven. */
interface DriveRunOptions {
  /** Who decides, for the record. */
  readonly by: string
  /** Asked for each call that waits, one at a time. */
  readonly choose: (approval: PendingApproval) => ApprovalChoice | Promise<ApprovalChoice>
  /** Gets each event of the run once, in order, from the first. The next one waits for it. */
  readonly watch: (event: RuntimeEvent) => void | Promise<void>
}

/**
 * Waits for a run to rest, answers what it is suspended on, and so on until it is done or something is left for later.
 * Throws a `CommandError` with the code `refused` when the run takes none of the decisions.
 */
export async function driveRun(run: Run, options: DriveRunOptions): Promise<RunResult> {
  let watchedSeq = 0
  for (;;) {
    for await (const event of run.after(watchedSeq)) {
      watchedSeq = event.seq
      await options.watch(event)
    }
    const result = await run.result
    if (result.status === 'done' || !(await decide(run, result.pendingApprovals, options))) return result
  }
}

/** Asks for a decision on each pending call, and returns whether any decision lets the run continue. */
async function decide(
  run: Run,
  pending: readonly PendingApproval[],
  options: DriveRunOptions,
): Promise<boolean> {
  const { by, choose } = options
  const decisions: (() => ReturnType<Run['approve']>)[] = []
  for (const approval of pending) {
    const choice = await choose(approval)
    if (choice.kind === 'approve') decisions.push(() => run.approve(approval, { by, via: choice.via }))
    if (choice.kind === 'deny') {
      const { via, reason } = choice
      decisions.push(() => run.deny(approval, { by, via, reason }))
    }
  }
  const acknowledgements = await Promise.all(decisions.map((send) => send()))
  const refusals = acknowledgements.flatMap((acknowledgement) =>
    acknowledgement.accepted ? [] : [acknowledgement.message],
  )
  if (refusals.length > 0 && refusals.length === acknowledgements.length) {
    throw new CommandError('refused', `The run took no decision. ${refusals.join(' ')}`)
  }
  return acknowledgements.length > 0
}

const signals = ['SIGINT', 'SIGTERM'] as const

/** What a stop signal calls. */
export interface StopActions {
  /** Stops the run, so that a later command can continue it. */
  readonly drain: () => Promise<unknown>
  /** Ends the run. Ctrl-C calls it, if it is given. */
  readonly cancel?: () => Promise<unknown>
}

/** Whether the process got a stop signal; `off` stops listening for signals. */
export interface StopRequest {
  readonly asked: boolean
  readonly off: () => void
}

/** The first stop signal brings the run to rest, or ends it; the second ends the process. */
export function stopOnSignal({ say }: CommandContext, { drain, cancel }: StopActions): StopRequest {
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
        ? '\nCancelling: what was finished is kept. Once more ends this at once.'
        : '\nStopping: nothing more is started, and what is in flight may end. Once more ends this at once.',
    )
    const act = cancels ? cancel : drain
    // What went wrong is in the run's own result too.
    act().catch(() => undefined)
  }
  signals.forEach((signal) => process.on(signal, onSignal))
  return stop
}

/** Options of an interactive run. */
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
  /** Prints the events, one JSON object a line, as far as JSON is printed: the result is then the last line. */
  readonly eventLines?: boolean
  /** Prints the answer, where there is one, and shows the run on stderr. */
  readonly answer?: boolean | undefined
  /** Options that the command which continues the run needs as well. */
  readonly resumeArguments?: readonly string[]
  /** Events up to this `seq` are not shown. Default 0: all are. */
  readonly shownSeq?: number
}

const anyContext = option.valueThat('a context that processContext made', (value) => {
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
 * Shows a run as it proceeds, and has its approvals decided by the options or by the person at the terminal. Without
 * either, the run stays suspended. Ends with the tally and the next commands, or with one JSON object on stdout.
 * Rejects with a `ConfigurationError` for what is no context, no run or no options.
 */
export async function interactiveRun(
  context: CommandContext,
  run: Run,
  options: InteractiveRunOptions,
): Promise<RunResult> {
  requireOptions('interactiveRun', anyContext, context, 'the context')
  requireOptions('interactiveRun', anyRun, run, 'the run')
  requireOptions('interactiveRun', anyOptions, options)
  const stopped = await watchRun(context, run, options)
  await reportStopped(context, [stopped], options)
  return stopped.result
}

/** Prints, after the last of the runs, the next commands and the results in the requested form. */
export async function reportStopped(
  context: CommandContext,
  runs: readonly [StoppedRun, ...StoppedRun[]],
  {
    ledgerPath,
    answer,
    resumeArguments = [],
  }: Pick<InteractiveRunOptions, 'ledgerPath' | 'answer' | 'resumeArguments'>,
): Promise<void> {
  const { json, print, printData, programName } = context
  const last = runs.at(-1) ?? runs[0]
  const { result } = last
  const place = { programName, ledgerPath, resumeArguments }
  viewOf(context, answer).write(
    result.status === 'done' ? afterwards(result.runId, place) : continuation(last, place),
  )
  if (json) {
    const data = runs.map((each) => resultData(each.result, ledgerPath))
    const nested = data.reduceRight((parent, each) => ({ ...each, parent: parent }))
    await print(`${JSON.stringify(nested)}\n`)
  } else if (answer === true && result.status === 'done') await printData(`${result.text}\n`)
}

/** Where a run is shown. */
export function viewOf({ json, view, aside }: CommandContext, answer: boolean | undefined): View {
  return answer === true && !json ? aside : view
}

/** Does what `interactiveRun` does up to the tally. */
export async function watchRun(
  context: CommandContext,
  run: Run,
  options: InteractiveRunOptions,
): Promise<StoppedRun> {
  const { by = accountName(), shownSeq = 0, answer, eventLines = false } = options
  const view = viewOf(context, answer)
  const show = runPrinter(view)
  const halves: RuntimeEvent[] = []
  let metLimit: MetLimit | undefined
  const watch = async (event: RuntimeEvent): Promise<void> => {
    if (event.type === 'tool_request_ready' || event.type === 'tool_result') halves.push(event)
    if (event.type === 'limit_reached' && event.policy === 'ask') metLimit = event
    if (event.type === 'limit_raised') metLimit = undefined
    if (event.seq <= shownSeq) return
    show(event)
    if (eventLines && context.json) await context.print(`${JSON.stringify(event)}\n`)
  }
  const stop = stopOnSignal(context, options)
  const choose = chooserFor(context, options)
  const decided: DriveRunOptions['choose'] = (approval) => (stop.asked ? { kind: 'later' } : choose(approval))
  const driven = keepAlive(() => driveRun(run, { by, choose: decided, watch }))
  const result = await driven.finally(() => stop.off())
  const known =
    result.status === 'done' && result.seq <= shownSeq
      ? `Run ${result.runId} was done already: ${result.reason}. Nothing was left to do.\n`
      : ''
  const tally = `${known}Tally: ${tallyText(tallyCalls(halves))}. Tokens: ${usageText(result.usage)}.\n`
  view.write(`\n${tally}`)
  return { result, ...(metLimit !== undefined && { metLimit }) }
}

function chooserFor(
  context: CommandContext,
  { yes, deny }: InteractiveRunOptions,
): DriveRunOptions['choose'] {
  if (yes === true) return () => ({ kind: 'approve', via: '--yes' })
  if (deny !== undefined) return () => ({ kind: 'deny', via: '--deny', reason: deny })
  const { person } = context
  return person ? (approval) => askForApproval(person, approval) : () => ({ kind: 'later' })
}

/** A result for programs: missing values are null. */
function resultData(result: RunResult, ledger: string): object {
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
    ledger: shownLedger(ledger),
    pendingApprovals,
    deferredCalls,
  }
}
