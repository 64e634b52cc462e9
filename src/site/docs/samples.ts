import type { Sample } from "../../frame/components.ts";

const KEY = "rh_live_YOUR_KEY";

/** Returns a request in three languages, ready to paste: the key is read from the environment, or typed in. */
export function samplesOf(url: string, list: string): Sample[] {
  return [
    { name: "curl", language: "bash", text: `curl -H "X-Api-Key: \${ROUNDHOUSE_KEY:-${KEY}}" \\\n  "${url}"` },
    {
      name: "JavaScript",
      language: "javascript",
      text: `const { env } = process;
const key = env.ROUNDHOUSE_KEY ?? "${KEY}";
const response = await fetch("${url}", { headers: { "X-Api-Key": key } });
const answer = await response.json();
if (!answer.ok) throw new Error(\`\${answer.error.code}: \${answer.error.message}\`);
console.log(answer.${list});`,
    },
    {
      name: "Python",
      language: "python",
      text: `import json, os
from urllib.request import Request, urlopen

key = os.environ.get("ROUNDHOUSE_KEY", "${KEY}")
request = Request("${url}", headers={"X-Api-Key": key})
with urlopen(request, timeout=10) as response:  # raises HTTPError unless the status is 200
    answer = json.load(response)
print(answer["${list}"])`,
    },
  ];
}
