import { Refusal } from './refusal.ts'
import type { ContentBlock, MessagesRequest, RequestMessage, ToolResultBlock, ToolUseBlock } from './wire.ts'

/**
 * Checks the rules between the messages of a request: each `tool_use` has its `tool_result` in the next message, results
 * come first there and answer nothing else, ids are unique, and the tools that it mentions are defined. Throws a `Refusal`
 * that names the first violation.
 */
export function assertHistory(request: MessagesRequest): void {
  const messages = merged(request.messages)
  if (messages[0]?.role !== 'user') refuse('messages.0: the first message must use the `user` role')
  if (messages.at(-1)?.role === 'assistant') {
    refuse(
      'This model does not support assistant message prefill. The conversation must end with a user message.',
    )
  }
  const seen = new Set<string>()
  let open: readonly string[] = []
  messages.forEach(({ content }, place) => {
    if (content.length === 0) refuse(`messages.${place}: all messages must have non-empty content`)
    const results = content.filter((block): block is ToolResultBlock => block.type === 'tool_result')
    assertAnswered(open, results, place)
    const firstOther = content.findIndex((block) => block.type !== 'tool_result')
    if (firstOther !== -1 && firstOther < results.length) {
      refuse(`messages.${place}: \`tool_result\` blocks must come before any other content of their message`)
    }
    const uses = content.filter((block): block is ToolUseBlock => block.type === 'tool_use')
    for (const { id } of uses) {
      if (seen.has(id)) refuse(`messages.${place}: \`tool_use\` ids must be unique`)
      seen.add(id)
    }
    open = uses.map(({ id }) => id)
  })
  assertTools(request, seen.size > 0)
}

function assertAnswered(open: readonly string[], results: readonly ToolResultBlock[], place: number): void {
  const answered = new Set<string>()
  for (const { tool_use_id: id } of results) {
    if (!open.includes(id)) {
      refuse(
        `messages.${place}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. ` +
          'Each `tool_result` block must have a corresponding `tool_use` block in the previous message.',
      )
    }
    if (answered.has(id))
      refuse(`messages.${place}: each \`tool_use\` must have a single result, found more for ${id}`)
    answered.add(id)
  }
  const missing = open.filter((id) => !answered.has(id))
  if (missing.length > 0) {
    refuse(
      `messages.${place - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ` +
        `${missing.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
    )
  }
}

function assertTools({ tools, tool_choice: choice }: MessagesRequest, toolsWereUsed: boolean): void {
  const names = tools?.map(({ name }) => name) ?? []
  if (new Set(names).size < names.length) refuse('tools: Tool names must be unique.')
  if (toolsWereUsed && names.length === 0) {
    refuse('Requests which include `tool_use` or `tool_result` blocks must define tools.')
  }
  if (choice !== undefined && names.length === 0)
    refuse('tool_choice: may only be specified while providing tools.')
  if (choice?.type === 'tool' && !names.includes(choice.name)) {
    refuse(`tool_choice.name: Tool '${choice.name}' not found in provided tools`)
  }
}

/** Joins neighbouring messages of one role, as the vendor does. */
function merged(messages: readonly RequestMessage[]): readonly RequestMessage[] {
  const all: { role: RequestMessage['role']; content: ContentBlock[] }[] = []
  for (const { role, content } of messages) {
    const last = all.at(-1)
    if (last?.role === role) last.content.push(...content)
    else all.push({ role, content: [...content] })
  }
  return all
}

function refuse(message: string): never {
  throw new Refusal('invalid_request_error', message)
}
