import { brokenSchema } from './anthropic-schema-rules.ts'
import type { Loose } from './loose.ts'

/**
 * What Anthropic's Messages API refuses in a request, written from the wire's documentation and from errors that its
 * users met; it shares nothing with the code that it checks. Answers one line for each rule that is broken.
 */
export function brokenRules(body: Loose): string[] {
  const broken: string[] = []
  const rule = (holds: boolean, name: string): void => void (holds || broken.push(name))
  const messages: Loose[] = body.messages
  rule(Number.isInteger(body.max_tokens) && body.max_tokens > 0, 'max_tokens is required')
  rule(messages.length > 0, 'at least one message is required')
  const opening = messages[0]
  const compacted = opening?.role === 'assistant' && opening.content[0]?.type === 'compaction'
  rule(opening?.role === 'user' || compacted, 'the first message is from the user')
  messages.forEach((message, place) => {
    const at = `messages.${place}`
    rule(['user', 'assistant', 'system'].includes(message.role), `${at}: role`)
    if (message.role === 'system') {
      const [before, after] = [messages[place - 1]?.role, messages[place + 1]?.role ?? 'assistant']
      rule(before === 'user' && after === 'assistant', `${at}: a system message stands before a reply`)
    }
    rule(message.role !== messages[place - 1]?.role, `${at}: roles alternate`)
    rule(Array.isArray(message.content) && message.content.length > 0, `${at}: content is not empty`)
    message.content.forEach((block: Loose, index: number) =>
      checkBlock(block, message.role, `${at}.content.${index}`, rule),
    )
    if (message.role === 'assistant') checkAssistant(messages, place, rule)
    else checkUser(messages, place, rule)
  })
  checkIds(messages, rule)
  checkServerTools(messages, rule)
  checkTools(body, rule)
  checkThinking(body, rule)
  checkText(body, rule)
  checkOutput(body, rule)
  checkCitations(body, rule)
  return broken
}

type Rule = (holds: boolean, name: string) => void

const userKinds = ['text', 'image', 'document', 'tool_result']
const thinkingKinds = ['thinking', 'redacted_thinking']

function checkBlock(block: Loose, role: string, at: string, rule: Rule): void {
  if (role === 'user') {
    rule(userKinds.includes(block.type), `${at}: a user message holds no ${block.type}`)
    const cites = block.type === 'text' && block.citations !== undefined
    rule(!cites, `${at}: text of a user carries no citations`)
  } else {
    const usersOnly = ['tool_result', 'image', 'document'].includes(block.type)
    rule(!usersOnly, `${at}: an assistant message holds no ${block.type}`)
  }
  if (block.cache_control) rule(!thinkingKinds.includes(block.type), `${at}: thinking takes no cache_control`)
  byKind[block.type]?.(block, at, rule)
}

const byKind: { readonly [kind: string]: (block: Loose, at: string, rule: Rule) => void } = {
  text: (block, at, rule) =>
    rule(/\S/.test(block.text), `${at}: text content blocks must contain non-whitespace text`),
  thinking: (block, at, rule) =>
    rule(!!block.signature && typeof block.thinking === 'string', `${at}: thinking is signed`),
  redacted_thinking: (block, at, rule) => rule(!!block.data, `${at}: redacted thinking has data`),
  image: checkSource,
  document: checkSource,
  tool_result: checkResult,
  tool_use: (block, at, rule) => {
    rule(/^[a-zA-Z0-9_-]{1,64}$/.test(block.id), `${at}: tool_use.id`)
    rule(/^[a-zA-Z0-9_-]{1,128}$/.test(block.name), `${at}: tool_use.name`)
    const { input } = block
    rule(typeof input === 'object' && input !== null && !Array.isArray(input), `${at}: tool_use.input`)
  },
}

const mediaTypes: { readonly [kind: string]: readonly string[] } = {
  image: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'],
  document: ['application/pdf', 'text/plain'],
}

function checkSource({ type, source }: Loose, at: string, rule: Rule): void {
  if (source.type === 'url') return
  rule(mediaTypes[type]!.includes(source.media_type), `${at}: media type ${source.media_type}`)
  rule(/\S/.test(source.data), `${at}: the source has data`)
}

function checkResult(block: Loose, at: string, rule: Rule): void {
  const content: Loose[] = block.content ?? []
  rule(block.content === undefined || content.length > 0, `${at}: content is left out or not empty`)
  for (const inner of content) {
    rule(['text', 'image', 'document'].includes(inner.type), `${at}: a result holds no ${inner.type}`)
    byKind[inner.type]?.(inner, at, rule)
  }
  if (!block.is_error) return
  rule(content.length > 0, `${at}: content cannot be empty if is_error is true`)
  rule(
    content.every((inner) => inner.type === 'text'),
    `${at}: all content must be type text if is_error is true`,
  )
}

function checkAssistant(messages: Loose[], place: number, rule: Rule): void {
  const { content } = messages[place]
  const uses = content.filter((block: Loose) => block.type === 'tool_use').map((block: Loose) => block.id)
  const next: Loose[] = messages[place + 1]?.content ?? []
  const answers = next.filter((block) => block.type === 'tool_result').map((block) => block.tool_use_id)
  rule(
    uses.length === answers.length && uses.every((id: string) => answers.includes(id)),
    `messages.${place}: each tool_use has its tool_result in the next message`,
  )
  const last = content.at(-1)
  rule(!thinkingKinds.includes(last?.type), `messages.${place}: the final block cannot be thinking`)
  if (place === messages.length - 1 && last?.type === 'text') {
    rule(
      !/\s$/.test(last.text),
      `messages.${place}: final assistant content cannot end with trailing whitespace`,
    )
  }
}

function checkUser(messages: Loose[], place: number, rule: Rule): void {
  const kinds = messages[place].content.map((block: Loose) => block.type)
  const firstOther = kinds.findIndex((kind: string) => kind !== 'tool_result')
  const late = firstOther >= 0 && kinds.slice(firstOther).includes('tool_result')
  rule(!late, `messages.${place}: tool_result blocks come first`)
  const uses = (messages[place - 1]?.content ?? []).filter((block: Loose) => block.type === 'tool_use')
  for (const block of messages[place].content) {
    if (block.type !== 'tool_result') continue
    rule(
      uses.some((use: Loose) => use.id === block.tool_use_id),
      `messages.${place}: unexpected tool_use_id ${block.tool_use_id}`,
    )
  }
}

function checkIds(messages: Loose[], rule: Rule): void {
  const ids = messages.flatMap(({ content }) =>
    content.filter((block: Loose) => block.type === 'tool_use').map((block: Loose) => block.id),
  )
  rule(new Set(ids).size === ids.length, 'tool_use ids must be unique')
}

/** A result needs its use before it; a use needs its result, unless the request is what it waits for. */
function checkServerTools(messages: Loose[], rule: Rule): void {
  const uses = new Map<string, number>()
  messages.forEach(({ role, content }, place) => {
    for (const block of role === 'assistant' ? content : []) {
      if (block.type !== 'tool_use' && block.type.endsWith('_tool_use')) uses.set(block.id, place)
      if (block.type !== 'tool_result' && block.type.endsWith('_tool_result')) {
        rule(uses.has(block.tool_use_id), `messages.${place}: unexpected tool_use_id in ${block.type}`)
        uses.set(block.tool_use_id, -1)
      }
      if (block.caller?.tool_id) rule(uses.has(block.caller.tool_id), `messages.${place}: unknown caller`)
    }
  })
  for (const place of uses.values()) {
    if (place < 0) continue
    const wordsSince = messages
      .slice(place + 1)
      .some(
        ({ role, content }) =>
          role === 'user' && content.some((block: Loose) => block.type !== 'tool_result'),
      )
    rule(!wordsSince, `messages.${place}: a server tool use was found without its result`)
  }
}

function checkTools(body: Loose, rule: Rule): void {
  const tools: Loose[] = body.tools ?? []
  const servers: string[] = (body.mcp_servers ?? []).map((server: Loose) => server.name)
  const sets = tools.filter((tool) => tool.type === 'mcp_toolset').map((tool) => tool.mcp_server_name)
  const paired = sets.length === servers.length && servers.every((name) => sets.includes(name))
  rule(paired, 'each MCP server has one toolset')
  const named = tools.filter((tool) => tool.type !== 'mcp_toolset')
  const names = named.map((tool) => tool.name)
  rule(new Set(names).size === names.length, 'tools: tool names must be unique')
  for (const tool of named) {
    rule(/^[a-zA-Z0-9_-]{1,128}$/.test(tool.name), `tools: the name ${tool.name}`)
    rule(!(tool.defer_loading && tool.cache_control), 'a tool that is loaded later takes no cache_control')
    if (!tool.type) checkInputSchema(tool.input_schema, rule)
  }
  const blocks = body.messages.flatMap(({ content }: Loose) => content.map((block: Loose) => block.type))
  if (blocks.includes('tool_use')) rule(tools.length > 0, 'tools must be there when the history holds calls')
  const choice = body.tool_choice
  if (!choice) return
  rule(tools.length > 0, 'tool_choice needs tools')
  if (choice.type === 'tool') rule(names.includes(choice.name), 'tool_choice names a tool')
  if (choice.type === 'none')
    rule(choice.disable_parallel_tool_use === undefined, 'none takes no disable_parallel_tool_use')
}

function checkInputSchema(schema: Loose, rule: Rule): void {
  rule(schema?.type === 'object', 'tools: input_schema.type')
  for (const keyword of ['anyOf', 'oneOf', 'allOf'])
    rule(!(keyword in schema), `tools: input_schema does not support ${keyword} at its root`)
}

/** What the vendor compiles: schemas in its subset, and only so much of them. */
function checkOutput(body: Loose, rule: Rule): void {
  const strict = (body.tools ?? []).filter((tool: Loose) => tool.strict)
  const format = body.output_config?.format
  const schemas = [...strict.map((tool: Loose) => tool.input_schema), ...(format ? [format.schema] : [])]
  rule(strict.length <= 20, 'at most 20 strict tools')
  const checked = schemas.map(brokenSchema)
  for (const { broken } of checked) rule(broken.length === 0, broken.join('; '))
  const sum = (numbers: number[]) => numbers.reduce((all, one) => all + one, 0)
  rule(sum(checked.map(({ optional }) => optional)) <= 24, 'at most 24 optional properties')
  rule(sum(checked.map(({ unions }) => unions)) <= 16, 'at most 16 unions')
  if (format) rule(format.type === 'json_schema', 'output_config.format.type')
}

function checkCitations(body: Loose, rule: Rule): void {
  const blocks: Loose[] = body.messages.flatMap(({ content }: Loose) =>
    content.flatMap((block: Loose) => [block, ...(Array.isArray(block.content) ? block.content : [])]),
  )
  const cited = blocks.filter(({ type }) => type === 'document').map((block) => !!block.citations?.enabled)
  rule(new Set(cited).size <= 1, 'citations must be enabled on all or none of the documents')
  rule(!(cited.includes(true) && body.output_config?.format), 'citations take no output format')
}

function checkThinking(body: Loose, rule: Rule): void {
  const { thinking, messages } = body
  if (thinking?.type === 'disabled' && messages.at(-1)?.role === 'assistant') {
    const shown = messages.at(-1).content.some((block: Loose) => thinkingKinds.includes(block.type))
    rule(!shown, 'when thinking is disabled, the final assistant message cannot contain it')
  }
  if (thinking?.type !== 'enabled') return
  rule(thinking.budget_tokens >= 1024 && thinking.budget_tokens < body.max_tokens, 'thinking.budget_tokens')
  rule(!['any', 'tool'].includes(body.tool_choice?.type), 'thinking takes no forced tool_choice')
  const words = messages.findLastIndex(
    ({ role, content }: Loose) =>
      role === 'user' && content.some((block: Loose) => block.type !== 'tool_result'),
  )
  const begun = messages.slice(words + 1).find(({ role }: Loose) => role === 'assistant')
  if (begun)
    rule(thinkingKinds.includes(begun.content[0].type), 'expected thinking at the start of the open turn')
}

function checkText(body: Loose, rule: Rule): void {
  const serialised = JSON.stringify(body)
  rule(
    !/\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}/i.test(serialised),
    'no lone surrogates',
  )
  rule((serialised.match(/"cache_control"/g) ?? []).length <= 4, 'at most 4 cache breakpoints')
  if (body.system)
    rule(
      body.system.every((block: Loose) => /\S/.test(block.text)),
      'system text is not blank',
    )
}
