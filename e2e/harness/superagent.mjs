// Clients of the Superagent Guard API, written from its public description: what
// each generation sends, and what it reads of the answer.

export class GuardError extends Error {}

/** The first generation: createGuard, `prompt`, an answer whose content is a string. */
export function createGuard({ apiBaseUrl = 'https://app.superagent.sh/api/guard', apiKey }) {
  return async (prompt, { onBlock, onPass } = {}) => {
    const message = await post(apiBaseUrl, apiKey, { prompt })
    const decision = typeof message.content === 'string' ? read(message.content) : undefined
    return settle(decision, message.reasoning_content, { onBlock, onPass })
  }
}

/** The second: createClient, `text`, an answer whose content is an object or a string. */
export function createClient({ apiBaseUrl = 'https://app.superagent.sh/api', apiKey }) {
  return {
    async guard(text, { onBlock, onPass, systemPrompt } = {}) {
      const input = /^https?:\/\//.test(text) ? { url: text } : { text }
      const message = await post(`${apiBaseUrl}/guard`, apiKey, systemPrompt ? { ...input, system_prompt: systemPrompt } : input)
      const decision = typeof message.content === 'string' ? read(message.content) : message.content
      return settle(decision, message.reasoning ?? message.reasoning_content, { onBlock, onPass })
    },
  }
}

async function post(url, apiKey, body) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${apiKey}`, 'x-superagent-api-key': apiKey },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new GuardError(`Guard request failed with status ${response.status}: ${(await response.json()).error}`)
  return (await response.json()).choices[0].message
}

function read(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** As the published clients do: what is no block goes on. */
async function settle(content, reasoning, { onBlock, onPass }) {
  const status = content?.status ?? content?.classification
  const decision = content && { ...content, status }
  const rejected = status === 'block'
  if (rejected) await onBlock?.(decision.violation_types?.join(', ') || reasoning)
  else await onPass?.()
  return { decision, rejected, reasoning }
}
