/**
 * What Anthropic's Messages API refuses in a request, written from the wire's documentation and from errors that its
 * users met; it shares nothing with the code that it checks. Answers one line for each rule that is broken.
 */
export function brokenRules(body: any): string[] {
  const broken: string[] = []
  const rule = (holds: boolean, name: string): void => void (holds || broken.push(name))
  const messages: any[] = body.messages
  rule(Number.isInteger(body.max_tokens) && body.max_tokens > 0, 'max_tokens is required')
  rule(messages.length > 0, 'at least one message is required')
  rule(messages[0]?.role === 'user', 'the first message is from the user')
  messages.forEach((message, place) => {
    const at = `messages.${place}`
    rule(message.role === 'user' || message.role === 'assistant', `${at}: role`)
    rule(message.role !== messages[place - 1]?.role, `${at}: roles alternate`)
    rule(Array.isArray(message.content) && message.content.length > 0, `${at}: content is not empty`)
    message.content.forEach((block: any, index: number) => checkBlock(block, message.role, `${at}.content.${index}`, rule))
    if (message.role === 'assistant') checkAssistant(messages, place, rule)
    else checkUser(messages, place, rule)
  })
  checkIds(messages, rule)
  checkServerTools(messages, rule)
  checkTools(body, rule)
  checkThinking(body, rule)
  checkText(body, rule)
  return broken
}

type Rule = (holds: boolean, name: string) => void

const userKinds = ['text', 'image', 'document', 'tool_result']
const thinkingKinds = ['thinking', 'redacted_thinking']

function checkBlock(block: any, role: string, at: string, rule: Rule): void {
  if (block.type === 'text') rule(/\S/.test(block.text), `${at}: text content blocks must contain non-whitespace text`)
  if (role === 'user') {
    rule(userKinds.includes(block.type), `${at}: a user message holds no ${block.type}`)
    rule(block.citations === undefined, `${at}: text of a user carries no citations`)
  } else {
    rule(!['tool_result', 'image', 'document'].includes(block.type), `${at}: an assistant message holds no ${block.type}`)
  }
  if (block.type === 'thinking') rule(!!block.signature && typeof block.thinking === 'string', `${at}: thinking is signed`)
  if (block.type === 'redacted_thinking') rule(!!block.data, `${at}: redacted thinking has data`)
  if (block.type === 'image' && block.source.type === 'base64') {
    rule(['image/jpeg', 'image/png', 'image/gif', 'image/webp'].includes(block.source.media_type), `${at}: media type`)
    rule(block.source.data !== '', `${at}: an image has data`)
  }
  if (block.type === 'tool_result') checkResult(block, at, rule)
  if (block.type === 'tool_use') {
    rule(/^[a-zA-Z0-9_-]{1,64}$/.test(block.id), `${at}: tool_use.id`)
    rule(/^[a-zA-Z0-9_-]{1,64}$/.test(block.name), `${at}: tool_use.name`)
    rule(typeof block.input === 'object' && block.input !== null && !Array.isArray(block.input), `${at}: tool_use.input`)
  }
  if (block.cache_control) rule(!thinkingKinds.includes(block.type), `${at}: thinking takes no cache_control`)
}

function checkResult(block: any, at: string, rule: Rule): void {
  const content: any[] = block.content ?? []
  rule(block.content === undefined || content.length > 0, `${at}: content is left out or not empty`)
  for (const inner of content) {
    rule(['text', 'image', 'document'].includes(inner.type), `${at}: a result holds no ${inner.type}`)
    if (inner.type === 'text') rule(/\S/.test(inner.text), `${at}: text in results must not be blank`)
  }
  if (!block.is_error) return
  rule(content.length > 0, `${at}: content cannot be empty if is_error is true`)
  rule(content.every((inner) => inner.type === 'text'), `${at}: all content must be type text if is_error is true`)
}

function checkAssistant(messages: any[], place: number, rule: Rule): void {
  const { content } = messages[place]
  const uses = content.filter((block: any) => block.type === 'tool_use').map((block: any) => block.id)
  const next: any[] = messages[place + 1]?.content ?? []
  const answers = next.filter((block) => block.type === 'tool_result').map((block) => block.tool_use_id)
  rule(
    uses.length === answers.length && uses.every((id: string) => answers.includes(id)),
    `messages.${place}: each tool_use has its tool_result in the next message`,
  )
  const last = content.at(-1)
  rule(!thinkingKinds.includes(last?.type), `messages.${place}: the final block cannot be thinking`)
  if (place === messages.length - 1 && last?.type === 'text') {
    rule(!/\s$/.test(last.text), `messages.${place}: final assistant content cannot end with trailing whitespace`)
  }
}

function checkUser(messages: any[], place: number, rule: Rule): void {
  const kinds = messages[place].content.map((block: any) => block.type)
  const firstOther = kinds.findIndex((kind: string) => kind !== 'tool_result')
  const late = firstOther >= 0 && kinds.slice(firstOther).includes('tool_result')
  rule(!late, `messages.${place}: tool_result blocks come first`)
  const uses = (messages[place - 1]?.content ?? []).filter((block: any) => block.type === 'tool_use')
  for (const block of messages[place].content) {
    if (block.type !== 'tool_result') continue
    rule(uses.some((use: any) => use.id === block.tool_use_id), `messages.${place}: unexpected tool_use_id ${block.tool_use_id}`)
  }
}

function checkIds(messages: any[], rule: Rule): void {
  const ids = messages.flatMap(({ content }) => content.filter((block: any) => block.type === 'tool_use').map((block: any) => block.id))
  rule(new Set(ids).size === ids.length, 'tool_use ids must be unique')
}

/** A result needs its use before it; a use needs its result, unless the request is what it waits for. */
function checkServerTools(messages: any[], rule: Rule): void {
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
    const wordsSince = messages.slice(place + 1).some(({ role, content }) => role === 'user' && content.some((block: any) => block.type !== 'tool_result'))
    rule(!wordsSince, `messages.${place}: a server tool use was found without its result`)
  }
}

function checkTools(body: any, rule: Rule): void {
  const tools: any[] = body.tools ?? []
  const names = tools.map((tool) => tool.name)
  rule(new Set(names).size === names.length, 'tools: tool names must be unique')
  for (const tool of tools) {
    rule(/^[a-zA-Z0-9_-]{1,64}$/.test(tool.name), `tools: the name ${tool.name}`)
    if (!tool.type) rule(tool.input_schema?.type === 'object', 'tools: input_schema.type')
  }
  const blocks = body.messages.flatMap(({ content }: any) => content.map((block: any) => block.type))
  if (blocks.includes('tool_use')) rule(tools.length > 0, 'tools must be there when the history holds calls')
  const choice = body.tool_choice
  if (!choice) return
  rule(tools.length > 0, 'tool_choice needs tools')
  if (choice.type === 'tool') rule(names.includes(choice.name), 'tool_choice names a tool')
  if (choice.type === 'none') rule(choice.disable_parallel_tool_use === undefined, 'none takes no disable_parallel_tool_use')
}

function checkThinking(body: any, rule: Rule): void {
  const { thinking, messages } = body
  if (thinking?.type === 'disabled' && messages.at(-1)?.role === 'assistant') {
    const shown = messages.at(-1).content.some((block: any) => thinkingKinds.includes(block.type))
    rule(!shown, 'when thinking is disabled, the final assistant message cannot contain it')
  }
  if (thinking?.type !== 'enabled') return
  rule(thinking.budget_tokens >= 1024 && thinking.budget_tokens < body.max_tokens, 'thinking.budget_tokens')
  rule(!['any', 'tool'].includes(body.tool_choice?.type), 'thinking takes no forced tool_choice')
  const words = messages.findLastIndex(
    ({ role, content }: any) => role === 'user' && content.some((block: any) => block.type !== 'tool_result'),
  )
  const begun = messages.slice(words + 1).find(({ role }: any) => role === 'assistant')
  if (begun) rule(thinkingKinds.includes(begun.content[0].type), 'expected thinking at the start of the open turn')
}

function checkText(body: any, rule: Rule): void {
  const serialised = JSON.stringify(body)
  rule(!/\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}/i.test(serialised), 'no lone surrogates')
  rule((serialised.match(/"cache_control"/g) ?? []).length <= 4, 'at most 4 cache breakpoints')
  if (body.system) rule(body.system.every((block: any) => /\S/.test(block.text)), 'system text is not blank')
}
