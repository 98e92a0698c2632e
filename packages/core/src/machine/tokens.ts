import type { ToolDefinition } from '../events/model-request.ts'
import type { AgentDefinition } from '../events/agent-definition.ts'
import type { Message } from '../events/content.ts'
import { computeDigest } from '../values/digest.ts'

/**
 * Tokens for a character, by its alphabet: on the safe side of what vendors' tokenizers give, since budgets reserve by
 * these numbers before a call. All of ASCII counts the same, so that a masked secret of the same length does.
 */
const TOKENS_BY_KIND = { ascii: 1 / 3.5, alphabet: 0.8, ideograph: 1.4, surrogate: 1.5 }

/** Tokens of a byte of a text file, whatever its alphabet. */
const TOKENS_OF_A_BYTE = 0.5
/** Tokens of an image. */
const IMAGE_TOKENS = 1_600
/** Tokens of one page of a document, its text and its picture. */
const PAGE_TOKENS = 3_000
/** Bytes of a document that hold a page at least: text-only pages are about as small. */
const PAGE_BYTES = 15_000
/** The pages that vendors take in one document. */
const MAX_PAGES = 100
/** Pages of a document whose size is unknown. */
const PAGES_UNKNOWN = 10
/** Tokens that a message costs beside its content. */
const MESSAGE_TOKENS = 6

/** About how many input tokens a message is worth. */
export function estimateMessageTokens(message: Message): number {
  const contents = message.role === 'tool' ? message.results.map(({ content }) => content) : [message.parts]
  return contents.reduce((sum, parts) => sum + MESSAGE_TOKENS + estimatePartTokens(parts), 0)
}

/** About how many input tokens the instructions and the tools are worth. */
export function estimateDefinitionTokens(definition: AgentDefinition): number {
  return estimateTextTokens(definition.instructions) + estimateToolTokens(definition.tools)
}

/** About how many input tokens a request of these messages has. */
export function estimateRequestTokens(definition: AgentDefinition, messages: readonly Message[]): number {
  return messages.reduce(
    (sum, message) => sum + estimateMessageTokens(message),
    estimateDefinitionTokens(definition),
  )
}

interface EstimatedPart {
  readonly type: string
  readonly text?: string
  readonly mediaType?: string
  readonly data?: string
}

function estimatePartTokens(parts: readonly EstimatedPart[]): number {
  return parts.reduce((sum, part) => {
    if (part.type === 'image') return sum + IMAGE_TOKENS
    if (part.type === 'file') return sum + estimateDocumentTokens(part)
    return sum + estimateTextTokens(part.text ?? JSON.stringify(part))
  }, 0)
}

/** A text file by its size, any other document by the pages that its size may hold. */
function estimateDocumentTokens({ mediaType = '', data }: EstimatedPart): number {
  if (data === undefined) return PAGES_UNKNOWN * PAGE_TOKENS
  const bytes = Math.ceil((data.length * 3) / 4)
  if (/^text\/|json|xml/.test(mediaType)) return Math.ceil(bytes * TOKENS_OF_A_BYTE)
  return Math.min(MAX_PAGES, Math.ceil(bytes / PAGE_BYTES)) * PAGE_TOKENS
}

/** About how many tokens a text is worth, as a whole number. */
export function estimateTextTokens(text: string): number {
  return Math.ceil(estimateTokens(text))
}

/** About how many tokens a text is worth, not rounded, so that pieces add up. One pass over its characters. */
export function estimateTokens(text: string): number {
  let tokens = 0
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < 0x80) tokens += TOKENS_BY_KIND.ascii
    else if (unit < 0x1100) tokens += TOKENS_BY_KIND.alphabet
    else tokens += unit >= 0xd800 && unit <= 0xdfff ? TOKENS_BY_KIND.surrogate : TOKENS_BY_KIND.ideograph
  }
  return tokens
}

/** About how many input tokens tools are worth. */
function estimateToolTokens(tools: readonly ToolDefinition[]): number {
  return estimateTextTokens(JSON.stringify(tools))
}

/** The tools of an agent's source that a model call was offered, at least one, and the digest of their list. */
export interface SourcedTools {
  readonly tools: readonly ToolDefinition[]
  readonly digest: string
}

/** The parts of a state that concern tools. */
interface Tooled {
  readonly definition: AgentDefinition
  readonly sourced?: SourcedTools
  readonly contextTokens: number
  readonly estimateFactor: number
}

/** A list of tools as the state keeps it; `undefined` if it is empty. */
function toSourcedTools(tools: readonly ToolDefinition[]): SourcedTools | undefined {
  return tools.length === 0 ? undefined : { tools, digest: computeDigest(tools) }
}

/** The digest of the tools of the source that a call is offered; `undefined` without any. */
export function digestSourced(
  { sourced }: Pick<Tooled, 'sourced'>,
  changed: readonly ToolDefinition[] | undefined,
): string | undefined {
  return (changed === undefined ? sourced : toSourcedTools(changed))?.digest
}

/** Returns whether a list has the same tools as the last call was offered: then it is not recorded again. */
export function isSameSource(state: Pick<Tooled, 'sourced'>, tools: readonly ToolDefinition[]): boolean {
  return toSourcedTools(tools)?.digest === state.sourced?.digest
}

/** The tools that a call is offered: those of the definition and of the source, or those of them that a turn names. */
export function filterOfferedTools(
  { definition, sourced }: Pick<Tooled, 'definition' | 'sourced'>,
  names: readonly string[] | undefined,
  changed: readonly ToolDefinition[] = sourced?.tools ?? [],
): readonly ToolDefinition[] {
  const all = changed.length === 0 ? definition.tools : [...definition.tools, ...changed]
  return names === undefined ? all : all.filter(({ name }) => names.includes(name))
}

/** About how many input tokens the next request has more, or fewer, with other tools of the source. */
export function estimateChangeTokens(
  { sourced, estimateFactor }: Pick<Tooled, 'sourced' | 'estimateFactor'>,
  changed: readonly ToolDefinition[] | undefined,
): number {
  if (changed === undefined) return 0
  const more = estimateToolTokens(changed) - estimateToolTokens(sourced?.tools ?? [])
  return Math.ceil(more * estimateFactor)
}

/** The state once a call was offered these tools of the source. */
export function withSource<State extends Tooled>(
  state: State,
  changed: readonly ToolDefinition[] | undefined,
): Omit<State, 'sourced'> & { readonly sourced?: SourcedTools } {
  if (changed === undefined) return state
  const { sourced: _before, ...others } = state
  const sourced = toSourcedTools(changed)
  const contextTokens = Math.max(0, state.contextTokens + estimateChangeTokens(state, changed))
  return { ...others, contextTokens, ...(sourced && { sourced }) }
}
