import { legalEvents, phases } from '@tallystick/core/machine'
import {
  failureClasses,
  finishReasons,
  guardedThings,
  guardrailActions,
  limitNames,
  onLimits,
  outcomes,
  recoveries,
  resumeReasons,
  stopReasons,
} from '@tallystick/core/vocabulary'
import * as meanings from './meanings.ts'
import { afterChild, afterFind } from './probes-around.ts'
import { afterFailure, afterReply, atLimit } from './probes.ts'
import { code, table, words } from './table.ts'

/** The page of all ways to end or to wait, as Markdown. */
export async function endingsPage(): Promise<string> {
  const sections = [
    intro(),
    ends(),
    await limits(),
    await replies(),
    await failures(),
    await finds(),
    calls(),
    await childRuns(),
    waits(),
    commands(),
  ]
  return `${sections.join('\n\n')}\n`
}

function intro(): string {
  return `# How a run ends, and what it waits for

\`pnpm docs:endings\` makes this page from the code, and a test compares the two. For the tables of what follows from a
limit, a reply or a failure, it plays each case with the runtime.

A run stops in one of two ways. It is **done**, with a reason, and nothing follows; or it is **suspended**: nothing is
in flight, no process has to be alive, and only a command continues it. \`await run.result\` returns in both cases. If a
run was drained while work of it was under way, its status is **interrupted**, also in lists. \`run.result\` rejects only
if the ledger or your own code is at fault. Finished results, partial text and usage are kept at every ending, and every
tool request has its result.`
}

function ends(): string {
  const from = phases.filter((phase) => legalEvents(phase).includes('run_finished'))
  return `## Reasons to be done

They are in \`result.reason\`, and in the event \`run_finished\`. A run can end only from these phases:
${from.map(code).join(', ')}.

${table(['reason', 'meaning'], words(finishReasons, meanings.ofFinishReasons))}`
}

async function limits(): Promise<string> {
  const rows: string[][] = []
  for (const limit of limitNames) {
    const row = [code(limit), meanings.ofLimits[limit]]
    for (const policy of onLimits) row.push(await atLimit(limit, policy))
    rows.push(row)
  }
  return `## At a limit

The event \`limit_reached\` names the limit; \`onLimit\` says what follows.

${table(['`onLimit`', 'what follows'], words(onLimits, meanings.ofPolicies))}

${table(['limit', 'counts', ...onLimits.map(code)], rows)}

Where the table says that the run continues, only the calls past the limit get \`limit_reached\`; \`maxCallsByTool\` does
the same for one tool.

\`maxRepeats\` counts reads with equal input and equal answer, several times in a row. A write or a call of unknown effect,
new input, an approval, a resume, and an answer that was not known make it count anew; a write is always run, and a tool
with \`repeats: 'allowed'\` is never counted.`
}

async function replies(): Promise<string> {
  const rows: string[][] = []
  for (const stop of stopReasons) {
    const { alone, withCall } = await afterReply(stop)
    rows.push([code(stop), meanings.ofStopReasons[stop], alone, withCall])
  }
  return `## After a reply

What follows depends on the reply's \`stopReason\`, and on whether the reply asks for tools.

${table(['stop reason', 'the model stopped because', 'without calls', 'with calls'], rows)}`
}

async function failures(): Promise<string> {
  const rows: string[][] = []
  for (const failure of failureClasses) {
    const { triedAgain, fallbackAsked, end } = await afterFailure(failure)
    const row = [triedAgain ? 'yes' : 'no', fallbackAsked ? 'yes' : 'no', end]
    // A resume says of an interrupted call that it may be made again, whatever the model.
    if (failure === 'interrupted') row[0] = 'yes, by a resume'
    rows.push([code(failure), meanings.ofFailures[failure], ...row])
  }
  return `## When a model call fails

The adapter says of each failure whether the same request may succeed later (\`retryable\`); the third column has the
usual answer of the class. \`retry\` limits the attempts; then the next of \`fallbacks\` is asked, unless it would fail in
the same way; then the run ends.

${table(['class', 'meaning', 'tried again', 'a fallback is asked', 'the run ends as'], rows)}`
}

async function finds(): Promise<string> {
  const rows: string[][] = []
  for (const on of guardedThings) {
    const row = [code(on), meanings.ofGuardedThings[on]]
    for (const action of guardrailActions) row.push(await afterFind(on, action))
    rows.push(row)
  }
  return `## When a guardrail finds something

\`guardrail_tripped\` says what it found, and \`guardrails_checked\` that it has checked. A guardrail that throws, or does
not answer in time, blocks.

${table(['on', 'looks at', ...guardrailActions.map(code)], rows)}

The ledger keeps what was replaced or withheld; the model and the result of the run have the replacement. An answer that
does not fit the agent's \`output\` schema first goes back to the model, up to \`maxOutputRepairs\` times (2);
\`output_checked\` says what did not fit.`
}

async function childRuns(): Promise<string> {
  return `## When a child run ends

A call of a tool that is an agent is a child run; its ending is the result of the call, and never ends its parent. It is
cancelled with its parent.

${table(
  ['the child run', 'ended as', 'the call of its parent gets'],
  (await afterChild()).map(({ what, reason, outcome }) => [what, code(reason), code(outcome)]),
)}`
}

function calls(): string {
  return `## Outcomes of tool calls

Each is a result that the model reads; all but \`success\` are errors to it. None of them ends the run, except the success
of a tool made by \`handBack\`: \`handed_back\`.

${table(['outcome', 'meaning'], words(outcomes, meanings.ofOutcomes))}`
}

function waits(): string {
  return `## What a run waits for

\`runtime.suspended()\` lists the runs that only a command continues. They wait for a decision about a call
(\`approve\`, \`deny\`; with \`maxApprovalMs\` it counts as denied when the time is over and the run is resumed), for a
limit to be raised (\`onLimit: 'ask'\`), or for a call to be settled. If a child run waits, the list has only the run at
the top, with the calls of both. A run that was drained while work of it was under way is \`interrupted\`, and not in that
list: it needs no decision, only \`resume\`. Resuming a run that still waits for the same appends nothing.

A run of a session does not begin while another run of the session is under way, or waits: its result rejects with a
\`LedgerConflictError\` of kind \`session\`. With \`whenBusy: 'wait'\` it begins after the end of that run. With
\`session(id).run(…, { whenBusy: 'join' })\` the input goes into that run, which \`run\` returns; if that run ends without
taking the input, the input begins the next run.

${table(['a call that is', 'means'], words(Object.keys(meanings.ofCallStatuses), meanings.ofCallStatuses))}

A process that takes a run over first records why (\`run_resumed\`):

${table(['why', 'meaning'], words(resumeReasons, meanings.ofResumeReasons))}

A call that was started and has no result is then in doubt. The tool's \`recovery\` says what follows:

${table(['`recovery`', 'what follows'], words(recoveries, meanings.ofRecoveries))}`
}

function commands(): string {
  return `## Commands that are refused

A command resolves with \`{ accepted: true }\`, or with \`{ accepted: false, code, message }\`; a refusal never throws.

${table(['code', 'meaning'], words(Object.keys(meanings.ofRefusals), meanings.ofRefusals))}`
}
