import type { ComponentChildren, JSX } from 'preact'
import { lastSeq, worker } from '../state/open-run.ts'
import { go, route, runId } from '../state/route.ts'
import { useRead } from '../state/use-read.ts'
import { describeDemands } from '../ui/demands.ts'
import { fence } from '../ui/fence.ts'
import { LineDiff } from '../ui/line-diff.tsx'
import { Same } from '../ui/same.tsx'
import { Seqs } from '../ui/seqs.tsx'
import { toneOfOutcome } from '../ui/status.tsx'
import { formatCost, formatDuration, formatTime, LongText, showHidden } from '../ui/text.tsx'
import { StandingApprovals } from './standing.tsx'
import type { CallApproval, CallAttempt, CallFacts, CallInput, CallLine } from '../worker/call.ts'

/** The call of the address; without one, the list of all calls to choose from. */
export function CallView(): JSX.Element {
  const { call } = route.value
  const key = `${runId.value} ${lastSeq.value} ${call ?? ''}`
  const list = useRead(call === undefined ? key : undefined, () => worker.readCalls())
  const standing = useRead(call === undefined ? key : undefined, () => worker.readStanding())
  const one = useRead(call === undefined ? undefined : key, () => worker.readCall(call!))
  if (call === undefined) {
    return (
      <>
        <StandingApprovals list={standing.value ?? []} />
        <CallList calls={list.value} />
      </>
    )
  }
  return (
    <div class="facts" aria-busy={one.isOld}>
      <p>
        <button type="button" class="quiet" onClick={() => go({ call: undefined })}>
          ‹ All calls
        </button>
      </p>
      {one.value === undefined ? (
        <p class="soft">{one.isOld ? 'Reading …' : 'The run has no call with this id.'}</p>
      ) : (
        <Call key={call} call={one.value} />
      )}
    </div>
  )
}

function CallList({ calls }: { readonly calls: readonly CallLine[] | undefined }): JSX.Element {
  if (calls === undefined) return <p class="soft">Reading …</p>
  if (calls.length === 0) return <p class="soft">The model has asked for no tool in this run.</p>
  return (
    <ul class="call-list">
      {calls.map(({ toolCallId, name, turn, outcome, attempts, durationMs }) => (
        <li key={toolCallId}>
          <button type="button" class="line" onClick={() => go({ call: toolCallId })}>
            <span class="soft">t{turn}</span>
            <b>{showHidden(name)}</b>
            <Outcome outcome={outcome} />
            <span class="soft end">
              {attempts > 1 && `${attempts} attempts `}
              {durationMs !== undefined && formatDuration(durationMs)}
            </span>
          </button>
        </li>
      ))}
    </ul>
  )
}

function Outcome({ outcome }: { readonly outcome: string | undefined }): JSX.Element {
  return (
    <span class={`badge ${toneOfOutcome(outcome)}`}>{outcome?.replaceAll('_', ' ') ?? 'no result yet'}</span>
  )
}

function Call({ call }: { readonly call: CallFacts }): JSX.Element {
  const { name, turn, outcome, toolCallId, isRemoved, malformed, inputs, digest, child } = call
  return (
    <>
      <header class="saw-head">
        <b>{showHidden(name)}</b>
        <span class="soft">turn {turn}</span>
        <Outcome outcome={outcome} />
        {digest?.is === 'same' && (
          <span class="badge good" title={`SHA-256 ${digest.recorded}`}>
            ✓ ran with this input
          </span>
        )}
        {digest?.is === 'other' && <span class="badge bad">✕ ran with another input</span>}
        {digest?.is === 'gone' && <span class="badge wait">input removed, digest not checked</span>}
        <code class="soft">{toolCallId}</code>
      </header>
      {isRemoved && <p class="notice">Content of this call was removed. What is left is shown.</p>}
      {malformed !== undefined && (
        <Section title="The model's text is not a JSON object">
          <LongText text={malformed} />
        </Section>
      )}
      <Inputs inputs={inputs} />
      <Policy call={call} />
      {call.approvals.map((approval) => (
        <Approval key={approval.seq} approval={approval} />
      ))}
      <StandingApprovals list={call.standing} />
      <CallAttempts call={call} />
      <Result call={call} />
      {child && (
        <Section title="Child run">
          <p>
            <button type="button" onClick={() => go({ run: child.runId, at: undefined, call: undefined })}>
              Open {child.runId}
            </button>
          </p>
          <p class="soft">
            {[
              ...(child.turns === undefined ? [] : [`${child.turns} turns`]),
              ...(child.costUsd === undefined ? [] : [formatCost(child.costUsd)]),
              ...(child.isEstimated ? ['estimated: it was counted before it had ended'] : []),
            ].join(', ')}
          </p>
        </Section>
      )}
      <Same
        command={['show', 'LEDGER', runId.value ?? '', '--turn', String(turn), '--json']}
        path={`runs/${runId.value}/events`}
        json={() => call}
        markdown={() => toMarkdown(call)}
      />
    </>
  )
}

function Section({
  title,
  seqs = [],
  children,
}: {
  readonly title: string
  readonly seqs?: readonly number[]
  readonly children: ComponentChildren
}): JSX.Element {
  return (
    <section class="section">
      <h3 class="with-seqs">
        {title} <Seqs seqs={seqs} />
      </h3>
      {children}
    </section>
  )
}

const authors: Readonly<Record<CallInput['by'], string>> = {
  model: 'Input, as the model asked',
  repair: 'Input, repaired',
  guardrail: 'Input, replaced by a guardrail',
  person: 'Input, edited',
}

/** The input as asked, and each change of it against the one before. */
function Inputs({ inputs }: { readonly inputs: readonly CallInput[] }): JSX.Element {
  return (
    <>
      {inputs.map(({ by, who, seq, text, note }, index) => {
        const before = inputs[index - 1]
        return (
          <Section
            key={seq}
            title={`${authors[by]}${by === 'person' ? ` by ${showHidden(who ?? '')}` : ''}`}
            seqs={[seq]}
          >
            {by !== 'person' && who !== undefined && <p class="soft">{showHidden(who)}</p>}
            {before && <LineDiff before={before.text.text} after={text.text} />}
            {before ? (
              <details>
                <summary class="soft">All of it</summary>
                <LongText text={text.text} length={text.length} />
              </details>
            ) : (
              <LongText text={text.text} length={text.length} />
            )}
            {note !== undefined && <p class="soft">The model reads: {showHidden(note)}</p>}
          </Section>
        )
      })}
    </>
  )
}

const plans: Readonly<Record<string, string>> = {
  run: 'Runs without a question.',
  ask: 'A person has to decide.',
  settle: 'Is not run: it gets its result at once.',
}

function Policy({ call: { policy, guardrails } }: { readonly call: CallFacts }): JSX.Element | null {
  if (policy === undefined) return null
  const { seq, plan, effect, recovery, reason, refusal } = policy
  return (
    <Section title="Policy" seqs={[seq]}>
      <p>{plans[plan] ?? plan}</p>
      {reason !== undefined && <p>Because: {showHidden(reason)}</p>}
      <p class="soft">
        {effect !== undefined && `Effect: ${effect}. `}
        {recovery !== undefined && `After a crash: ${recovery.replaceAll('_', ' ')}.`}
      </p>
      {refusal && (
        <>
          <p>
            <Outcome outcome={refusal.outcome} />
          </p>
          <LongText text={refusal.text} />
          {refusal.error && <LongText text={refusal.error.text} length={refusal.error.length} />}
        </>
      )}
      {guardrails.map(({ seq: at, guardrail, on, action, detail }) => (
        <p key={at}>
          Guardrail <b>{showHidden(guardrail)}</b> on {on.replaceAll('_', ' ')}: {action}
          {detail !== undefined && `, ${showHidden(detail)}`} <Seqs seqs={[at]} />
        </p>
      ))}
    </Section>
  )
}

function Approval({ approval }: { readonly approval: CallApproval }): JSX.Element {
  const { seq, reason, expiresAt, inputDigest, decision, approvers = [], added } = approval
  return (
    <Section title="Approval" seqs={[seq, ...(decision ? [decision.seq] : [])]}>
      {reason !== undefined && <p>Asked because: {showHidden(reason)}</p>}
      {describeDemands(approvers, [...added, ...(decision?.approved ? [decision] : [])]).map((words) => (
        <p key={words}>{showHidden(words)}</p>
      ))}
      {added.map(({ seq: at, by, roles = [] }) => (
        <p key={at}>
          <span class="badge good">✓ approved</span> by <b>{showHidden(by)}</b>
          {roles.length > 0 && ` (${showHidden(roles.join(', '))})`} <Seqs seqs={[at]} />
        </p>
      ))}
      {decision === undefined ? (
        <p>
          <span class="badge wait">◐ waits for a decision</span>
          {expiresAt !== undefined && ` until ${formatTime(expiresAt)}`}
        </p>
      ) : (
        <p>
          <span class={`badge ${decision.approved ? 'good' : 'bad'}`}>
            {decision.approved ? '✓ approved' : '✕ denied'}
          </span>{' '}
          by <b>{showHidden(decision.by)}</b>
          {decision.roles && ` (${showHidden(decision.roles.join(', '))})`}
          {decision.via !== undefined && ` via ${showHidden(decision.via)}`}
          {decision.reason !== undefined && `: ${showHidden(decision.reason)}`}
        </p>
      )}
      {decision?.isElsewhere && (
        <p class="soft">It was made in the run from which this one was forked, and starts nothing here.</p>
      )}
      <p class="soft">
        {decision === undefined || decision.isBound
          ? 'Bound to the input'
          : 'Not bound to the input that was asked about'}{' '}
        <code title={inputDigest}>{showHidden(inputDigest.slice(0, 16))}…</code>
      </p>
    </Section>
  )
}

function CallAttempts({ call: { calls, idempotencyKey } }: { readonly call: CallFacts }): JSX.Element | null {
  if (calls.length === 0) return null
  return (
    <Section title={calls.length === 1 ? 'Attempt' : 'Attempts'}>
      <ol class="attempts">
        {calls.map((attempt) => (
          <Attempt key={attempt.attempt} attempt={attempt} />
        ))}
      </ol>
      {idempotencyKey !== undefined && (
        <p class="soft">
          Every attempt has the idempotency key <code>{showHidden(idempotencyKey)}</code>
        </p>
      )}
    </Section>
  )
}

function Attempt({ attempt }: { readonly attempt: CallAttempt }): JSX.Element {
  const { seq, endSeq, outcome, durationMs, text, error, retryAt, progress, deferred } = attempt
  const isBad = toneOfOutcome(outcome) === 'bad'
  return (
    <li class={isBad ? 'failed' : ''}>
      <b>{attempt.attempt}</b>
      <Outcome outcome={outcome} />
      {durationMs !== undefined && <span class="soft">{formatDuration(durationMs)}</span>}
      {progress > 0 && <span class="soft">{progress} reports of progress</span>}
      {deferred && (
        <span class="soft">
          continues outside as <code>{showHidden(deferred.receipt)}</code>
          {deferred.deadlineAt !== undefined && ` until ${formatTime(deferred.deadlineAt)}`}
        </span>
      )}
      {retryAt !== undefined && <span class="soft">again at {formatTime(retryAt)}</span>}
      <Seqs seqs={[seq, ...(endSeq === undefined ? [] : [endSeq])]} />
      {text && (
        <div class="failure">
          <LongText text={text.text} length={text.length} />
        </div>
      )}
      {error && (
        <details class="failure">
          <summary>Exception</summary>
          <LongText text={error.text} length={error.length} />
        </details>
      )}
    </li>
  )
}

function Result({ call: { result } }: { readonly call: CallFacts }): JSX.Element | null {
  if (result === undefined) return null
  const { seq, recorded, read, readBecause, error, settledBy, reused } = result
  return (
    <>
      <Section title="Result, as recorded" seqs={[seq]}>
        {settledBy !== undefined && <p class="soft">Settled by {showHidden(settledBy)}</p>}
        {reused !== undefined && (
          <p class="soft">Nothing ran: it is the recorded result of call {showHidden(reused)}.</p>
        )}
        <LongText text={recorded.text} length={recorded.length} />
      </Section>
      <Section title="Result, as the model read it">
        {read === undefined ? (
          <p class="soft">The same.</p>
        ) : (
          <>
            <p class="soft">
              {readBecause === 'projected'
                ? 'The form that the tool has for the model.'
                : 'Shortened for the model.'}
            </p>
            <LongText text={read.text} length={read.length} />
          </>
        )}
      </Section>
      {error && (
        <Section title="Exception, which the model does not see">
          <LongText text={error.text} length={error.length} />
        </Section>
      )}
    </>
  )
}

function toMarkdown({ name, turn, outcome, inputs, policy, approvals, calls, result }: CallFacts): string {
  return [
    `# Call of ${name} in turn ${turn}: ${outcome ?? 'no result yet'}`,
    ...inputs.map(
      ({ by, who, text }) =>
        `## ${authors[by]}${who === undefined ? '' : ` (${who})`}\n\n${fence(text.text)}`,
    ),
    ...(policy ? [`Policy: ${policy.plan}${policy.reason === undefined ? '' : `, ${policy.reason}`}`] : []),
    ...approvals.map(({ decision }) =>
      decision === undefined
        ? 'Waits for a decision.'
        : `${decision.approved ? 'Approved' : 'Denied'} by ${decision.by}${decision.reason === undefined ? '' : `: ${decision.reason}`}`,
    ),
    ...calls.map((each) => `Attempt ${each.attempt}: ${each.outcome ?? 'under way'}`),
    ...(result ? [`## Result\n\n${fence(result.recorded.text)}`] : []),
    ...(result?.read ? [`## As the model read it\n\n${fence(result.read.text)}`] : []),
    ...(result?.error ? [`## Exception\n\n${fence(result.error.text)}`] : []),
  ].join('\n\n')
}
