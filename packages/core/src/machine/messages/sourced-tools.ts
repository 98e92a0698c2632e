import { toolTokens } from './token-estimate.ts'
import { digestOf } from '../../vocabulary/values/digest.ts'
import type { ToolDefinition } from '../../vocabulary/model/tool-definition.ts'
import type { AgentDefinition } from '../../vocabulary/agent/agent-definition.ts'

/** The tools of an agent's source that a model call was offered, at least one, and the digest of their list. */
export interface SourcedTools {
  readonly tools: readonly ToolDefinition[]
  readonly digest: string
}

/** What a state knows of tools. */
interface Tooled {
  readonly definition: AgentDefinition
  readonly sourced?: SourcedTools
  readonly contextTokens: number
  readonly estimateFactor: number
}

/** A list of tools as the state keeps it; `undefined` where it is empty. */
function kept(tools: readonly ToolDefinition[]): SourcedTools | undefined {
  return tools.length === 0 ? undefined : { tools, digest: digestOf(tools) }
}

/** The digest of the tools of the source that a call is offered; `undefined` without any. */
export function sourcedDigest(
  { sourced }: Pick<Tooled, 'sourced'>,
  changed: readonly ToolDefinition[] | undefined,
): string | undefined {
  return (changed === undefined ? sourced : kept(changed))?.digest
}

/** Whether a list has the same tools as the last call was offered: then it is not recorded again. */
export function isSameSource(state: Pick<Tooled, 'sourced'>, tools: readonly ToolDefinition[]): boolean {
  return kept(tools)?.digest === state.sourced?.digest
}

/** The tools that a call is offered: those of the definition and of the source, or those of them that a turn names. */
export function offeredTools(
  { definition, sourced }: Pick<Tooled, 'definition' | 'sourced'>,
  names: readonly string[] | undefined,
  changed: readonly ToolDefinition[] = sourced?.tools ?? [],
): readonly ToolDefinition[] {
  const all = changed.length === 0 ? definition.tools : [...definition.tools, ...changed]
  return names === undefined ? all : all.filter(({ name }) => names.includes(name))
}

/** About how many input tokens the next request has more, or fewer, with other tools of the source. */
export function tokensOfChange(
  { sourced, estimateFactor }: Pick<Tooled, 'sourced' | 'estimateFactor'>,
  changed: readonly ToolDefinition[] | undefined,
): number {
  if (changed === undefined) return 0
  const more = toolTokens(changed) - toolTokens(sourced?.tools ?? [])
  return Math.ceil(more * estimateFactor)
}

/** The state once a call was offered these tools of the source. */
export function withSource<State extends Tooled>(
  state: State,
  changed: readonly ToolDefinition[] | undefined,
): Omit<State, 'sourced'> & { readonly sourced?: SourcedTools } {
  if (changed === undefined) return state
  const { sourced: _before, ...others } = state
  const sourced = kept(changed)
  const contextTokens = Math.max(0, state.contextTokens + tokensOfChange(state, changed))
  return { ...others, contextTokens, ...(sourced && { sourced }) }
}
