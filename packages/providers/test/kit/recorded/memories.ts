import { expect } from 'vitest'
import type { Expected } from '../written/reading.ts'

type Memory = Pick<Expected, 'carried' | 'executed' | 'citations'>

const caller = { type: 'code_execution_20250825', tool_id: 'srvtoolu_01MzSrFWsmzBdcoQkGWLyRjK' }
const container = { id: 'container_011CWHPPTDTn1XufeRB9uHeH' }

/** What parts of recorded replies carry for their vendors, and what the vendors ran in them, by folder and file. */
export const memories: { readonly [path: string]: Memory } = {
  'anthropic/thinking-text.sse': {
    carried: {
      0: { block: { signature: expect.stringMatching(/^EvMCCkYICxgC[A-Za-z0-9+/]{480}P\/UhjfQYAQ==$/) } },
    },
  },
  'anthropic/thinking-redacted.sse': {
    carried: {
      0: { block: { data: expect.stringMatching(/^.{744}$/) } },
      1: { block: { data: expect.stringMatching(/^.{296}$/) } },
    },
  },
  'anthropic/advisor.sse': {
    carried: { 0: { block: { signature: expect.stringMatching(/^EpADCokBCA8Y.*VZhYFcZNzhgB$/) } } },
    executed: [{ name: 'advisor' }, { name: 'advisor' }],
  },
  'anthropic/code-execution.sse': {
    carried: {
      2: { block: { input: { command: 'echo "65465-6544 * 65464-6+1.02255" | bc -l' } } },
      3: {
        block: { content: { stdout: '-428330955.97745\n', return_code: 0 } },
        container: { id: 'container_011CaNRFAbjdPf4rmBarZzqQ', expires_at: '2026-04-24T11:13:36.730129Z' },
      },
    },
    executed: [{ name: 'bash_code_execution' }, { name: 'bash_code_execution', outcome: 'success' }],
  },
  'anthropic/web-search-citations.sse': {
    carried: {
      0: { block: { input: { query: 'latest stable Ruby version' } } },
      1: { block: { content: Array.from({ length: 10 }, () => expect.anything()) } },
      2: { block: { citations: [{ url: 'https://www.ruby-lang.org/en/downloads/' }] } },
      4: {
        block: {
          citations: [{ url: 'https://www.ruby-lang.org/en/news/2026/07/14/ruby-4-0-6-released/' }],
        },
      },
    },
    executed: [
      { id: expect.any(String), name: 'web_search', input: { query: 'latest stable Ruby version' } },
      { id: expect.any(String), name: 'web_search', outcome: 'success' },
    ],
  },
  'anthropic/mcp-connector.sse': {
    carried: { 1: { block: { server_name: 'deepwiki', input: { repoName: 'pydantic/pydantic-ai' } } } },
    executed: [
      { name: 'deepwiki/ask_question', input: { repoName: 'pydantic/pydantic-ai' } },
      { name: 'deepwiki/ask_question', outcome: 'success' },
    ],
  },
  'anthropic/programmatic-1-code-exec-calls-tool.jsonl': {
    carried: {
      1: {
        block: {
          input: { code: expect.stringMatching(/^\nimport asyncio\n[^]*asyncio\.run\(main\(\)\)\n$/) },
        },
        container,
      },
      2: { block: { caller } },
    },
  },
  'anthropic/programmatic-2-prefilled-message-start.jsonl': {
    carried: {
      0: { block: { caller }, container: { ...container, expires_at: '2025-12-20T05:33:37.969567Z' } },
    },
  },
  'anthropic/compaction-beta.sse': {
    carried: {
      0: {
        block: {
          content: expect.stringMatching(
            /^The user provided a very long context[^]*Say hello to the user\.$/,
          ),
        },
      },
    },
  },
  // The item began with other encrypted content, which was not whole.
  'openai-responses/encrypted-reasoning-turn1.jsonl': {
    carried: {
      0: {
        item: {
          encrypted_content: expect.stringMatching(/^gAAAAABpPDIVOKrsHNZ0GwsoEKA_IGfuJ5f8Ma/),
          id: 'rs_01830d662ab3856501693c321405c88190be3ab04d5782d5f9',
          summary: [{ type: 'summary_text', text: expect.stringMatching(/^\*\*Calculating step-by-step/) }],
        },
      },
    },
  },
  'openai-responses/reasoning-function-call.sse': {
    carried: {
      0: {
        item: {
          type: 'reasoning',
          summary: [],
          encrypted_content: expect.stringMatching(/^gAAAAABoyXvxI6jwG5j6rvTGC7PD6JN5758K/),
        },
      },
    },
  },
  'openai-responses/code-interpreter.sse': {
    executed: ['n = pow(123456, 123)\nlen(str(n))', 'str(n)[:100], str(n)[-100:]', 'n'].map((code) => ({
      name: 'code_interpreter',
      input: { code },
    })),
  },
  'openai-responses/reasoning-web-search.sse': {
    carried: {
      1: {
        item: {
          action: {
            type: 'search',
            query: 'weather: San Francisco, CA',
            sources: [{ type: 'api', name: 'oai-weather' }],
          },
        },
      },
    },
    executed: [{ name: 'web_search', input: { type: 'search', query: 'weather: San Francisco, CA' } }],
  },
  'openai-responses/mcp-call.sse': {
    carried: {
      2: {
        item: {
          name: 'ask_question',
          server_label: 'deepwiki',
          error: null,
          output: expect.stringMatching(/^The `pydantic\/pydantic-ai` repository is a Python agent/),
        },
      },
    },
    executed: [
      { name: 'deepwiki/ask_question', input: { repoName: 'pydantic/pydantic-ai' }, outcome: 'success' },
    ],
  },
  'openai-responses/phase-commentary.sse': { carried: { 1: { item: { phase: 'commentary' } } } },
  'openai-responses/tool-search.sse': {
    carried: {
      1: { item: { tools: [{ name: 'get_exchange_rate' }] } },
      2: { item: { namespace: 'get_exchange_rate' } },
    },
  },
  'openai-compatible/deepseek-reasoning-tool.jsonl': { carried: { 0: { reasoning: 'reasoning_content' } } },
  'openai-compatible/ollama-v1-gpt-oss-tool.sse': { carried: { 0: { reasoning: 'reasoning' } } },
}
