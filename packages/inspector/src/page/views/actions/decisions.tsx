import './actions.css'
import type { StandingScope } from '@tallystick/core/vocabulary'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { waits } from '../../state/open-run.ts'
import { runId } from '../../state/route.ts'
import { may } from '../../state/runs.ts'
import { source } from '../../state/source.ts'
import { describeDemands } from '../../ui/demands.ts'
import { Dialog, DialogEnd, Field } from '../../ui/dialog.tsx'
import { useSending } from '../../ui/sending.ts'
import { showHidden } from '../../ui/text.tsx'
import type { PendingDecision } from '../../worker/waits.ts'
import { RaiseDialog } from './raise-dialog.tsx'
import { SettleDialog } from './settle-dialog.tsx'

/** What the run waits for, where a person can do something about it: one line each, above all else. */
export function WaitingFor(): JSX.Element | null {
  const now = waits.value
  if (now === undefined || now.isDone) return null
  const { approvals, deferred, limit } = now
  if (approvals.length + deferred.length === 0 && limit === undefined) return null
  return (
    <ul class="waiting" aria-label="What the run waits for">
      {approvals.map((call) => (
        <Approval key={call.toolCallId} call={call} />
      ))}
      {deferred.map((call) => (
        <Line
          key={call.toolCallId}
          words={
            <>
              <b>{showHidden(call.name)}</b> is carried out elsewhere as{' '}
              <code>{showHidden(call.externalId)}</code>
            </>
          }
          permission="settle"
          action="Settle…"
        >
          {(close) => <SettleDialog call={call} onClose={close} />}
        </Line>
      ))}
      {limit && (
        <Line
          words={
            <>
              The limit <b>{limit.limit}</b> was reached{limit.max === undefined ? '' : `: ${limit.max}`}
            </>
          }
          permission="raise"
          action="Raise…"
        >
          {(close) => <RaiseDialog limit={limit} onClose={close} />}
        </Line>
      )}
    </ul>
  )
}

function Line({
  words,
  more = [],
  permission,
  action,
  children,
}: {
  readonly words: JSX.Element
  /** More about it, below. */
  readonly more?: readonly string[]
  readonly permission: string
  readonly action: string
  readonly children: (close: () => void) => JSX.Element
}): JSX.Element {
  const [isOpen, setOpen] = useState(false)
  return (
    <li>
      <span aria-hidden="true">◐</span>
      <span class="words">{words}</span>
      {may(permission) && (
        <button type="button" class="primary" onClick={() => setOpen(true)}>
          {action}
        </button>
      )}
      {more.map((each) => (
        <span key={each} class="demands soft">
          {showHidden(each)}
        </span>
      ))}
      {isOpen && children(() => setOpen(false))}
    </li>
  )
}

function Approval({ call }: { readonly call: PendingDecision }): JSX.Element {
  const words = (
    <>
      <b>{showHidden(call.name)}</b> waits for a decision
      {call.reason !== undefined && <span class="soft">: {showHidden(call.reason)}</span>}
    </>
  )
  return (
    <Line
      words={words}
      more={describeDemands(call.approvers, call.approvals)}
      permission="approve"
      action="Decide…"
    >
      {(close) => <DecisionDialog call={call} onClose={close} />}
    </Line>
  )
}

/** The whole input of a call, and what to do with it: approve, with changes or without, or deny. */
function DecisionDialog({
  call,
  onClose,
}: {
  readonly call: PendingDecision
  readonly onClose: () => void
}): JSX.Element {
  const { toolCallId, name, attempt, inputDigest, input, approvers, approvals } = call
  const shown = JSON.stringify(JSON.parse(input), undefined, 2)
  const [isEditing, setEditing] = useState(false)
  const [edited, setEdited] = useState(shown)
  const [reason, setReason] = useState('')
  const [scope, setScope] = useState<StandingScope | undefined>(undefined)
  const [hours, setHours] = useState(1)
  // What several people approve none of them can change, or extend to other calls.
  const isForSeveral = approvals.length > 0 || approvers.some(({ count = 1 }) => count > 1)
  const { isBusy, trouble, send } = useSending()
  const fault = isEditing ? findInputFault(edited) : undefined
  const answer = { toolCallId, attempt, inputDigest, ...(reason !== '' && { reason }) }
  const decide = (verb: 'approve' | 'deny', body: object): void =>
    send(() => source.value.send(`runs/${runId.value}/${verb}`, body), onClose)
  return (
    <Dialog title={`Decide about ${showHidden(name)}`} onClose={onClose}>
      {call.reason !== undefined && <p class="soft">{showHidden(call.reason)}</p>}
      {describeDemands(approvers, approvals).map((words) => (
        <p key={words}>{showHidden(words)}</p>
      ))}
      {isEditing ? (
        <Field label="Input that runs instead" {...(fault !== undefined && { hint: fault })}>
          <textarea
            class="mono"
            rows={Math.min(16, edited.split('\n').length + 1)}
            value={edited}
            onInput={(event) => setEdited(event.currentTarget.value)}
          />
        </Field>
      ) : (
        <div class="field">
          <span class="label">Input</span>
          <pre class="input">{showHidden(shown, { spaces: true })}</pre>
          <span class="soft hint">
            The decision is about this input, {inputDigest.slice(0, 16)}…
            {!isForSeveral && (
              <button type="button" class="quiet" onClick={() => setEditing(true)}>
                Change it
              </button>
            )}
          </span>
        </div>
      )}
      {!isForSeveral && !isEditing && (
        <Scope {...{ name, scope, hours }} onScope={setScope} onHours={setHours} />
      )}
      <Field label="Reason" hint="The record keeps it; the model reads why a call was denied.">
        <input value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      </Field>
      <DialogEnd
        trouble={trouble}
        action={isEditing ? 'Approve with this input' : 'Approve'}
        disabled={isBusy || fault !== undefined}
        onClick={() =>
          decide('approve', {
            ...answer,
            ...(isEditing
              ? { input: JSON.parse(edited) as object }
              : scope && { standing: { for: scope, expiresInMs: hours * hourMs } }),
          })
        }
      >
        <button
          type="button"
          disabled={isBusy || reason === ''}
          title={reason === '' ? 'Say why first: the model reads it.' : ''}
          onClick={() => decide('deny', answer)}
        >
          Deny
        </button>
      </DialogEnd>
    </Dialog>
  )
}

const hourMs = 3_600_000

/** How long an approval can stand, in hours. */
const ends: readonly (readonly [hours: number, words: string])[] = [
  [0.25, '15 minutes'],
  [1, '1 hour'],
  [8, '8 hours'],
  [24, '1 day'],
  [168, '7 days'],
  [720, '30 days'],
]

/** Which calls an approval covers, and for how long. */
function Scope({
  name,
  scope,
  hours,
  onScope,
  onHours,
}: {
  readonly name: string
  readonly scope: StandingScope | undefined
  readonly hours: number
  readonly onScope: (scope: StandingScope | undefined) => void
  readonly onHours: (hours: number) => void
}): JSX.Element {
  const scopes = [
    [undefined, 'This call alone'],
    ['equal_input', `Also later calls of ${name} with an equal input`],
    ['session', `Also all later calls of ${name}`],
  ] as const
  return (
    <>
      <fieldset class="field">
        <legend class="label">An approval covers</legend>
        {scopes.map(([value, words]) => (
          <label key={words} class="check">
            <input type="radio" name="scope" checked={scope === value} onChange={() => onScope(value)} />
            {showHidden(words)}
          </label>
        ))}
      </fieldset>
      {scope && (
        <Field
          label="For"
          hint="In this run and the later runs of its session. It can be withdrawn before, under Call."
        >
          <select value={hours} onChange={(event) => onHours(Number(event.currentTarget.value))}>
            {ends.map(([value, words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </select>
        </Field>
      )}
    </>
  )
}

function findInputFault(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? undefined
      : 'The input of a call is an object.'
  } catch (error) {
    return (error as Error).message
  }
}
