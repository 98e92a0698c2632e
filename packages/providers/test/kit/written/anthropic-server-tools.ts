import { close, delta, json, open, stop, text, textBlock, thinkingBlock, toolBlock } from '../streams.ts'
import { begin, counted, reason, stream } from './anthropic-stream.ts'
import { said, type Written } from './reading.ts'

const end = ['end', 'end_turn'] as const
const whole = (index: number, block: object) => [open(index, block), close(index)]
const use = (index: number, id: string, name: string, ...pieces: string[]) => [
  open(index, { type: 'server_tool_use', id, name, input: {} }),
  ...['', ...pieces].map((piece) => json(index, piece)),
  close(index),
]
const gullPage = 'https://birds.example/gulls'
const cited = {
  type: 'web_search_result_location',
  url: gullPage,
  title: 'Gulls',
  encrypted_index: 'aW5kZXg=',
}
const caller = { type: 'code_execution_20250825', tool_id: 'srvtoolu_01' }
const container = { id: 'container_w1', expires_at: '2030-05-01T06:00:00Z' }

/** Replies of Anthropic with tools that it runs itself. */
export const anthropicServerTools: readonly Written[] = [
  stream(
    'web-search-with-citations',
    [
      begin(),
      ...use(0, 'srvtoolu_01', 'web_search', '{"query": "gull', 's of the \\u00d8resund"}'),
      ...whole(1, {
        type: 'web_search_tool_result',
        tool_use_id: 'srvtoolu_01',
        content: [
          {
            type: 'web_search_result',
            url: gullPage,
            title: 'Gulls',
            encrypted_content: 'cGFnZQ==',
            page_age: null,
          },
        ],
      }),
      ...textBlock(2, 'Of gulls, '),
      open(3, { type: 'text', text: '', citations: [] }),
      delta(3, { type: 'citations_delta', citation: { ...cited, cited_text: 'Six kinds breed here.' } }),
      text(3, 'six kinds '),
      text(3, 'breed here'),
      close(3),
      ...textBlock(4, '.'),
      reason('end_turn', {
        input_tokens: 90,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        server_tool_use: { web_search_requests: 1 },
      }),
      stop,
    ],
    {
      parts: [
        ...([['server_tool_use'], ['web_search_tool_result']] as const),
        said('text', 'Of gulls, '),
        said('text', 'six kinds breed here'),
        said('text', '.'),
      ],
      usage: { inputTokens: 90, outputTokens: 12, cacheReadTokens: 0, cacheWriteTokens: 0, webSearches: 1 },
      // Two prompts of 30 and 60 tokens are billed, so that the second one and the reply are the conversation.
      context: 60 + 12,
      stop: end,
      carried: {
        0: { block: { input: { query: 'gulls of the Øresund' } } },
        3: { block: { citations: [cited] } },
      },
      executed: [
        { id: 'srvtoolu_01', name: 'web_search', input: { query: 'gulls of the Øresund' } },
        { id: 'srvtoolu_01', name: 'web_search', outcome: 'success' },
      ],
      citations: { 3: [{ url: gullPage, title: 'Gulls', quote: 'Six kinds breed here.' }] },
    },
  ),
  stream(
    'web-search-that-failed',
    [
      begin(),
      ...use(0, 'srvtoolu_01', 'web_search', '{"query":"gulls"}'),
      ...whole(1, {
        type: 'web_search_tool_result',
        tool_use_id: 'srvtoolu_01',
        content: { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' },
      }),
      ...textBlock(2, 'I could not look.'),
      reason('end_turn'),
      stop,
    ],
    {
      parts: [['server_tool_use'], ['web_search_tool_result'], said('text', 'I could not look.')],
      usage: counted,
      stop: end,
      executed: [{ name: 'web_search' }, { name: 'web_search', outcome: 'failed' }],
    },
  ),
  stream(
    'web-fetch-behind-thinking',
    [
      begin(),
      ...thinkingBlock(0, 'The page will say.', 'ZmV0Y2g='),
      ...use(1, 'srvtoolu_01', 'web_fetch', `{"url":"${gullPage}"}`),
      ...whole(2, {
        type: 'web_fetch_tool_result',
        tool_use_id: 'srvtoolu_01',
        content: {
          type: 'web_fetch_result',
          url: gullPage,
          retrieved_at: '2030-05-01T05:00:00Z',
          content: {
            type: 'document',
            title: 'Gulls',
            source: { type: 'text', media_type: 'text/plain', data: 'Six.' },
          },
        },
      }),
      ...textBlock(3, 'Six.'),
      reason('end_turn'),
      stop,
    ],
    {
      parts: [
        ...([
          said('reasoning', 'The page will say.'),
          ['server_tool_use'],
          ['web_fetch_tool_result'],
        ] as const),
        said('text', 'Six.'),
      ],
      usage: counted,
      stop: end,
      executed: [
        { name: 'web_fetch', input: { url: gullPage } },
        { name: 'web_fetch', outcome: 'success' },
      ],
    },
  ),
  stream(
    'citations-of-documents',
    [
      begin(),
      open(0, { type: 'text', text: '', citations: [] }),
      text(0, 'The pier is closed'),
      delta(0, {
        type: 'citations_delta',
        citation: {
          type: 'page_location',
          cited_text: 'Pier: closed.',
          document_index: 0,
          document_title: 'Notice',
          start_page_number: 2,
          end_page_number: 4,
        },
      }),
      delta(0, {
        type: 'citations_delta',
        citation: {
          type: 'char_location',
          cited_text: 'until May',
          document_index: 1,
          document_title: null,
          file_id: 'file_w1',
          start_char_index: 10,
          end_char_index: 19,
        },
      }),
      close(0),
      reason('end_turn'),
      stop,
    ],
    {
      parts: [said('text', 'The pier is closed')],
      usage: counted,
      stop: end,
      citations: {
        0: [
          // The vendor names the page after the last one.
          { title: 'Notice', quote: 'Pier: closed.', pages: { from: 2, to: 3 } },
          { fileId: 'file_w1', quote: 'until May' },
        ],
      },
    },
  ),
  stream(
    'code-execution-in-a-container',
    [
      begin({ container }),
      ...use(0, 'srvtoolu_01', 'bash_code_execution', '{"command": "echo \\', '"6\\" | wc"}'),
      ...whole(1, {
        type: 'bash_code_execution_tool_result',
        tool_use_id: 'srvtoolu_01',
        content: {
          type: 'bash_code_execution_result',
          stdout: '1 1 2\n',
          stderr: '',
          return_code: 0,
          content: [],
        },
      }),
      ...textBlock(2, 'Two bytes.'),
      reason('end_turn', {}, { container }),
      stop,
    ],
    {
      parts: [['server_tool_use'], ['bash_code_execution_tool_result'], said('text', 'Two bytes.')],
      usage: counted,
      stop: end,
      carried: { 1: { container } },
      executed: [
        { name: 'bash_code_execution', input: { command: 'echo "6" | wc' } },
        { name: 'bash_code_execution', outcome: 'success' },
      ],
    },
  ),
  stream(
    'call-from-within-code',
    [
      begin(),
      ...use(0, 'srvtoolu_01', 'code_execution', '{"code":"await get_tide(6)"}'),
      open(1, { type: 'tool_use', id: 'toolu_01', name: 'get_tide', input: {}, caller }),
      json(1, '{"hour":6}'),
      close(1),
      reason('tool_use', {}, { container }),
      stop,
    ],
    {
      parts: [['server_tool_use'], ['tool_call']],
      calls: [['toolu_01', 'get_tide', { hour: 6 }]],
      usage: counted,
      stop: ['tool_use', 'tool_use'],
      carried: { 0: { container }, 1: { block: { caller } } },
      executed: [{ name: 'code_execution', input: { code: 'await get_tide(6)' } }],
    },
  ),
  stream(
    'call-whole-in-the-message-start',
    [
      begin(
        {
          content: [{ type: 'tool_use', id: 'toolu_02', name: 'get_tide', input: { hour: 7 }, caller }],
          stop_reason: 'tool_use',
          container,
        },
        { input_tokens: 0, output_tokens: 0 },
      ),
      reason('tool_use', { output_tokens: 0 }),
      stop,
    ],
    {
      parts: [['tool_call']],
      calls: [['toolu_02', 'get_tide', { hour: 7 }]],
      usage: { inputTokens: 0, outputTokens: 0 },
      stop: ['tool_use', 'tool_use'],
      carried: { 0: { block: { caller }, container } },
    },
  ),
  stream(
    'mcp-connector',
    [
      begin(),
      open(0, { type: 'mcp_tool_use', id: 'mcptoolu_01', name: 'berths', server_name: 'port', input: {} }),
      json(0, ''),
      json(0, '{"pier":'),
      json(0, '3}'),
      close(0),
      ...whole(1, {
        type: 'mcp_tool_result',
        tool_use_id: 'mcptoolu_01',
        is_error: false,
        content: [{ type: 'text', text: 'Two are free.' }],
      }),
      ...textBlock(2, 'Two.'),
      reason('end_turn'),
      stop,
    ],
    {
      parts: [['mcp_tool_use'], ['mcp_tool_result'], said('text', 'Two.')],
      usage: counted,
      stop: end,
      carried: { 0: { block: { server_name: 'port', input: { pier: 3 } } } },
      executed: [
        { id: 'mcptoolu_01', name: 'port/berths', input: { pier: 3 } },
        { id: 'mcptoolu_01', name: 'port/berths', outcome: 'success' },
      ],
    },
  ),
  stream(
    'tool-search',
    [
      begin(),
      ...use(0, 'srvtoolu_01', 'tool_search_tool_regex', '{"pattern":"tide"}'),
      ...whole(1, {
        type: 'tool_search_tool_result',
        tool_use_id: 'srvtoolu_01',
        content: {
          type: 'tool_search_tool_search_result',
          tool_references: [{ type: 'tool_reference', tool_name: 'get_tide' }],
        },
      }),
      ...toolBlock(2, 'toolu_01', 'get_tide', '{"hour":', '8}'),
      reason('tool_use'),
      stop,
    ],
    {
      parts: [['server_tool_use'], ['tool_search_tool_result'], ['tool_call']],
      calls: [['toolu_01', 'get_tide', { hour: 8 }]],
      usage: counted,
      stop: ['tool_use', 'tool_use'],
      executed: [
        { name: 'tool_search_tool_regex', input: { pattern: 'tide' } },
        { name: 'tool_search_tool_regex', outcome: 'success' },
      ],
    },
  ),
]
