import type { EventOf, FactOf } from '../events/event.ts'
import { addMs, type Approver, type Approvers, type StandingApproval } from '../events/event-parts.ts'
import { computeDigest } from '../values/digest.ts'
import type { Json } from '../values/json.ts'
import { refuse, type Decision } from './rules.ts'
import type { Call, ExecutingState, RunState } from './state.ts'
import { filterOfferedTools } from './tokens.ts'

/** A standing approval, with the event of this run that holds it. */
export interface KnownStanding extends StandingApproval {
  readonly seq: number
}

/**
 * Returns whether two names are of one person. A directory or a person may write a name in another case or with other spaces,
 * and one person must not count as two.
 */
export function isSamePerson(by: string, other: string | undefined): boolean {
  return other !== undefined && (by === other || toBareName(by) === toBareName(other))
}

function toBareName(name: string): string {
  const bare = name.normalize('NFKC').replaceAll(/[\s\p{C}\p{Default_Ignorable_Code_Point}\u2800]/gu, '')
  // The small forms of one letter, as of ß and final σ, differ: their large forms do not.
  return bare.toUpperCase().toLowerCase()
}

/** Returns whether a person counts for what a call demands. */
export function fitsDemand({ roles }: Approvers, { roles: own = [] }: Approver): boolean {
  return roles === undefined || roles.some((role) => own.includes(role))
}

/** Returns whether these people are all that a call demands. Each of them has approved once. */
export function areEnough(demands: readonly Approvers[] = [], people: readonly Approver[]): boolean {
  return demands.every(
    (demand) => people.filter((person) => fitsDemand(demand, person)).length >= (demand.count ?? 1),
  )
}

/** Returns the refusal of an approval by a person who does not count; `undefined` for one who does. */
export function refuseApprover(
  { owner }: Pick<RunState, 'owner'>,
  { toolCallId, approvers = [], approvals = [] }: Pick<Call, 'toolCallId' | 'approvers' | 'approvals'>,
  person: Approver,
): Decision | undefined {
  if (approvers.length === 0) return undefined
  const { by } = person
  if (isSamePerson(by, owner)) {
    return refuse(
      'not_an_approver',
      `${sayName(by, owner)} started this run, and tool call ${toolCallId} needs the approval of somebody else. Ask another approver.`,
    )
  }
  const before = approvals.find((approval) => isSamePerson(approval.by, by))
  if (before) {
    return refuse(
      'approved_before',
      `${sayName(by, before.by)} has approved tool call ${toolCallId} before, and it waits for another person. Ask another approver.`,
    )
  }
  if (approvers.some((demand) => fitsDemand(demand, person))) return undefined
  const roles = [...new Set(approvers.flatMap((demand) => demand.roles ?? []))].join(', ')
  return refuse(
    'not_an_approver',
    `${by} may not approve tool call ${toolCallId}, which needs an approver with one of these roles: ${roles}. Ask a person who has one.`,
  )
}

/** A name, and how it is on record if that differs. */
function sayName(by: string, recorded = by): string {
  return by === recorded ? by : `${by} (on record as ${recorded})`
}

/** The digest of a call's tool as the model was shown it, and of its effect, which the person was shown. */
function computeToolDigest(state: RunState, { name, effect }: Pick<Call, 'name' | 'effect'>): string {
  const tool = filterOfferedTools(state, undefined).find((each) => each.name === name)
  return computeDigest([tool ?? null, effect ?? null] as unknown as Json)
}

/** Returns whether a standing approval of a run is one that it may apply: a fork asks anew (law 13). */
function isOwn({ parent }: Pick<RunState, 'parent'>, { seq }: KnownStanding): boolean {
  return parent?.relation !== 'fork' || seq > parent.seq
}

/** Returns whether a standing approval covers a call that nobody was asked about yet. */
export function covers(state: RunState, standing: KnownStanding, call: Call, now: number): boolean {
  const { agent, name, toolDigest, inputDigest, expiresAt, by } = standing
  if (call.status !== 'to_ask' || call.inputRemoved || now >= expiresAt || !isOwn(state, standing))
    return false
  // What was repaired may be a guess, which a person has to see.
  if (inputDigest === undefined ? call.repaired : inputDigest !== call.inputDigest) return false
  if (agent !== state.agent || name !== call.name || toolDigest !== computeToolDigest(state, call))
    return false
  const isAllowed = (call.approvers ?? []).length === 0 || !isSamePerson(by, state.owner)
  return isAllowed && areEnough(call.approvers, [standing])
}

/** Lets calls run that a standing approval covers. */
export function applyStanding(state: ExecutingState, now: number): readonly FactOf<'approval_applied'>[] {
  const { standing = [], turn } = state
  if (standing.length === 0) return []
  return state.calls.flatMap((call) => {
    const found = standing.find((each) => covers(state, each, call, now))
    if (found === undefined) return []
    const { toolCallId, attempts, inputDigest = '' } = call
    const { by, toolCallId: standingId } = found
    const attempt = attempts + 1
    return [{ type: 'approval_applied', turn, toolCallId, attempt, inputDigest, by, standing: standingId }]
  })
}

/** Adds what an approval lets later calls do, if it says so, in place of an earlier one of the same call. */
export function withStanding(
  state: RunState,
  { standing, by, roles, elsewhere, seq, at, toolCallId }: EventOf<'approval_decided'>,
  call: Call,
): RunState {
  const { name, inputDigest } = call
  if (standing === undefined || elsewhere || inputDigest === undefined) return state
  const expiresAt = addMs(at, standing.expiresInMs)
  const given: KnownStanding = {
    ...{
      toolCallId,
      by,
      agent: state.agent,
      name,
      toolDigest: computeToolDigest(state, call),
      expiresAt,
      seq,
    },
    ...(roles && { roles }),
    ...(standing.for === 'equal_input' && { inputDigest }),
  }
  const others = (state.standing ?? []).filter((each) => each.toolCallId !== toolCallId)
  return { ...state, standing: [...others, given] }
}

/** Returns the standing approvals of a run that a later run of its session begins with. */
export function carryStanding(state: RunState, now: number): readonly StandingApproval[] {
  return (state.standing ?? [])
    .filter((each) => isOwn(state, each) && now < each.expiresAt)
    .map(({ seq: _here, ...standing }) => standing)
}

/** Ends a standing approval of the run before its time. */
export function withoutStanding(state: RunState, standing: string): RunState {
  return { ...state, standing: (state.standing ?? []).filter(({ toolCallId }) => toolCallId !== standing) }
}
