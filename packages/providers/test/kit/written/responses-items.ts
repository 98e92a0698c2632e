import { said, type Written } from './reading.ts'
import {
  added,
  callBegins,
  callEnds,
  completed,
  created,
  done,
  item,
  message,
  messageBegins,
  messageEnds,
  saying,
  stream,
  tokens,
} from './responses-stream.ts'

const end = ['end', 'completed'] as const
const toolUse = ['tool_use', 'completed'] as const
const gulls = 'https://birds.example/gulls'
const codeCall = (code: string) => ({
  type: 'code_interpreter_call',
  id: 'ci_0',
  container_id: 'cntr_w1',
  code,
})
const codeDelta = (delta: string) => ({
  type: 'response.code_interpreter_call_code.delta',
  item_id: 'ci_0',
  output_index: 0,
  delta,
})
const mcpTool = { name: 'berths', description: 'Counts.', input_schema: { type: 'object' }, annotations: {} }
const mcpList = { type: 'mcp_list_tools', id: 'mcpl_0', server_label: 'port', tools: [mcpTool] }
const mcpArguments = (delta: string) => ({
  type: 'response.mcp_call_arguments.delta',
  item_id: 'mcp_1',
  output_index: 1,
  delta,
})
const mcpCall = { type: 'mcp_call', id: 'mcp_1', server_label: 'port', name: 'berths', status: 'completed' }
const mcpAsked = { approval_request_id: null, error: null, output: null }
const searchResults = [
  { file_id: 'file_w1', filename: 'gulls.txt', score: 0.9, text: 'Six kinds.', attributes: {} },
]
const urlCitation = { type: 'url_citation', start_index: 0, end_index: 9, url: gulls, title: 'Gulls' }
const fileCitation = { type: 'file_citation', index: 3, file_id: 'file_w1', filename: 'gulls.txt' }

/** Replies of the Responses wire with tools that the vendor runs itself. */
export const responsesItems: readonly Written[] = [
  stream(
    'web-search-with-citations',
    [
      created(),
      added(0, { type: 'web_search_call', id: 'ws_0', status: 'in_progress' }),
      { type: 'response.web_search_call.in_progress', item_id: 'ws_0', output_index: 0 },
      { type: 'response.web_search_call.searching', item_id: 'ws_0', output_index: 0 },
      { type: 'response.web_search_call.completed', item_id: 'ws_0', output_index: 0 },
      done(0, {
        type: 'web_search_call',
        id: 'ws_0',
        status: 'completed',
        action: { type: 'search', query: 'gulls', sources: [{ type: 'url', url: gulls }] },
      }),
      [...messageBegins(1), saying(1, 'Six kinds.')],
      {
        type: 'response.output_text.annotation.added',
        item_id: 'msg_1',
        output_index: 1,
        content_index: 0,
        annotation_index: 0,
        annotation: urlCitation,
      },
      messageEnds(1, 'Six kinds.', {}, [urlCitation]),
      completed(),
    ],
    {
      parts: [['web_search_call'], said('text', 'Six kinds.')],
      usage: { ...tokens, webSearches: 1 },
      stop: end,
      executed: [{ id: 'ws_0', name: 'web_search', input: { query: 'gulls' }, outcome: 'success' }],
      citations: { 1: [{ url: gulls, title: 'Gulls', place: { from: 0, to: 9 } }] },
    },
  ),
  stream(
    'file-search-with-citations',
    [
      created(),
      item(0, { type: 'file_search_call', id: 'fs_0', queries: ['gulls'], results: searchResults }),
      [...messageBegins(1), saying(1, 'Six.'), ...messageEnds(1, 'Six.', {}, [fileCitation])],
      completed(),
    ],
    {
      parts: [['file_search_call'], said('text', 'Six.')],
      usage: tokens,
      stop: end,
      executed: [{ name: 'file_search', input: { queries: ['gulls'] }, outcome: 'success' }],
      citations: { 1: [{ fileId: 'file_w1', title: 'gulls.txt' }] },
    },
  ),
  stream(
    'code-interpreter',
    [
      created(),
      added(0, { ...codeCall(''), status: 'in_progress', outputs: null }),
      [codeDelta('6 '), codeDelta('* 7')],
      { type: 'response.code_interpreter_call_code.done', item_id: 'ci_0', output_index: 0, code: '6 * 7' },
      done(0, { ...codeCall('6 * 7'), status: 'completed', outputs: [{ type: 'logs', logs: '42' }] }),
      message(1, '42'),
      completed(),
    ],
    {
      parts: [['code_interpreter_call'], said('text', '42')],
      usage: tokens,
      stop: end,
      executed: [{ id: 'ci_0', name: 'code_interpreter', input: { code: '6 * 7' }, outcome: 'success' }],
    },
  ),
  stream(
    'mcp-call',
    [
      created(),
      [added(0, { ...mcpList, tools: [] }), done(0, mcpList)],
      added(1, { ...mcpCall, ...mcpAsked, arguments: '' }),
      [mcpArguments('{"pier"'), mcpArguments(':3}')],
      {
        type: 'response.mcp_call_arguments.done',
        item_id: 'mcp_1',
        output_index: 1,
        arguments: '{"pier":3}',
      },
      done(1, { ...mcpCall, ...mcpAsked, arguments: '{"pier":3}', output: 'Two are free.' }),
      message(2, 'Two.'),
      completed(),
    ],
    {
      parts: [['mcp_list_tools'], ['mcp_call'], said('text', 'Two.')],
      usage: tokens,
      stop: end,
      carried: { 1: { item: { server_label: 'port', output: 'Two are free.' } } },
      executed: [{ id: 'mcp_1', name: 'port/berths', input: { pier: 3 }, outcome: 'success' }],
    },
  ),
  stream(
    'mcp-call-that-failed',
    [
      created(),
      added(0, { ...mcpCall, ...mcpAsked, arguments: '' }),
      done(0, {
        ...mcpCall,
        ...mcpAsked,
        arguments: '{}',
        error: { type: 'mcp_tool_execution_error', content: [] },
      }),
      message(1, 'The port is silent.'),
      completed(),
    ],
    {
      parts: [['mcp_call'], said('text', 'The port is silent.')],
      usage: tokens,
      stop: end,
      executed: [{ name: 'port/berths', input: {}, outcome: 'failed' }],
    },
  ),
  stream(
    'mcp-approval',
    [
      created(),
      [added(0, { ...mcpList, tools: [] }), done(0, mcpList)],
      ...['added', 'done'].map((moment) => ({
        type: `response.output_item.${moment}`,
        output_index: 1,
        item: {
          type: 'mcp_approval_request',
          id: 'mcpr_1',
          server_label: 'port',
          name: 'berths',
          arguments: '{"pier":3}',
        },
      })),
      completed(),
    ],
    {
      parts: [['mcp_list_tools'], ['tool_call']],
      calls: [['mcpr_1', 'mcp_approval', { server: 'port', tool: 'berths', input: { pier: 3 } }]],
      usage: tokens,
      stop: toolUse,
    },
  ),
  stream(
    'tool-search',
    [
      created(),
      item(0, {
        type: 'tool_search_call',
        id: 'tsc_0',
        execution: 'server',
        call_id: null,
        arguments: { paths: ['tide'] },
      }),
      item(1, {
        type: 'tool_search_output',
        id: 'tso_1',
        execution: 'server',
        call_id: null,
        tools: [{ type: 'function', name: 'get_tide', parameters: { type: 'object' }, strict: true }],
      }),
      [callBegins(2, 'call_w1', 'get_tide')],
      callEnds(2, ['call_w1', 'get_tide'], '{"hour":6}', { namespace: 'get_tide' }),
      completed(),
    ],
    {
      parts: [['tool_search_call'], ['tool_search_output'], ['tool_call']],
      calls: [['call_w1', 'get_tide', { hour: 6 }]],
      usage: tokens,
      stop: toolUse,
      carried: { 1: { item: { tools: [{ name: 'get_tide' }] } }, 2: { item: { namespace: 'get_tide' } } },
      executed: [{ name: 'tool_search', input: { paths: ['tide'] }, outcome: 'success' }],
    },
  ),
]
