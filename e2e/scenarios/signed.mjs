// Signed URLs carry no header at all, so only the domain form can route them.
async function put(url, data) {
  const form = new FormData()
  form.append('file', new Blob([data]), 'upload.txt')
  const response = await fetch(url, { method: 'POST', body: form })
  return { status: response.status, body: response.ok ? 'ok' : await response.text() }
}

async function get(url) {
  const response = await fetch(url)
  return { status: response.status, body: await response.text() }
}

export const signed = {
  'upload and download by URL': async (sandbox) => {
    const up = await put(await sandbox.uploadUrl('signed.txt'), 'by URL')
    return { up, down: await get(await sandbox.downloadUrl('signed.txt')), read: await sandbox.files.read('signed.txt') }
  },

  'with an expiry in the future': async (sandbox) => {
    const up = await put(await sandbox.uploadUrl('later.txt', { useSignatureExpiration: 60 }), 'later')
    return { up, down: await get(await sandbox.downloadUrl('later.txt', { useSignatureExpiration: 60 })) }
  },

  'an expired or altered signature is refused': async (sandbox) => {
    await sandbox.files.write('kept.txt', 'kept')
    const expired = await get(await sandbox.downloadUrl('kept.txt', { useSignatureExpiration: -60 }))
    const url = new URL(await sandbox.downloadUrl('kept.txt'))
    url.searchParams.set('path', 'other.txt')
    return [expired.status, (await get(url)).status]
  },
}
