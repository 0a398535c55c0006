/** A scanner's result: the half-open range of the text to redact, and the rule that matched. */
export type Span = { start: number; end: number; rule: string }

/**
 * The number of characters that may still be read a second time. Without this limit, a malicious text could make dex read the
 * same rows again and again.
 */
export type RereadBudget = { left: number }

/**
 * A token that names its issuer. `keys` are the strings to search for, at least three characters each. If one is found, `token`
 * is matched there (`back` characters before it), so its cost is bounded by the token and never by the text.
 */
export type TokenRule = {
  name: string
  /** The strings to search for, separated by spaces. */
  keys: string
  token: RegExp
  back?: number
  /** True if the key is short or a word, so that the preceding character must not be part of a word. */
  boundary?: true
  /** True if the key alone proves little, so that the text after it must also look random. */
  random?: true
  /** True if the key counts only in base64, because other scanners find the plain form. */
  encodedOnly?: true
}

export const PRIVATE_RULE = "private"
export const PRIVATE_KEY_RULE = "private-key"

/**
 * Token formats as their issuers publish them. Lengths are lower bounds if the issuer may extend them, and every repetition is
 * bounded or ends at a character that cannot repeat the key, so no text makes a rule slow.
 */
export const TOKEN_RULES: TokenRule[] = [
  {
    name: "aws-access-key",
    keys: "AKIA ASIA ABIA ACCA",
    token: /A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}(?![A-Za-z0-9])/y,
    boundary: true,
  },
  { name: "aws-bedrock-key", keys: "ABSKQmVkcm9ja0FQSUtleS", token: /ABSKQmVkcm9ja0FQSUtleS[A-Za-z0-9+/=]{60,260}/y },
  { name: "github-token", keys: "ghp_ gho_ ghu_ ghs_ ghr_", token: /gh[pousr]_[A-Za-z0-9]{36,255}/y },
  { name: "github-token", keys: "ghs_", token: /ghs_[A-Za-z0-9._-]{60,800}/y },
  { name: "github-pat", keys: "github_pat_", token: /github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{40,80}/y },
  {
    name: "gitlab-token",
    keys: "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- glsoat- glffct- glwt-",
    token: /gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct|wt)-[A-Za-z0-9_.-]{20,300}/y,
    boundary: true,
  },
  { name: "gitlab-token", keys: "gloas-", token: /gloas-[0-9a-f]{64}/y },
  {
    name: "slack-token",
    keys: "xoxa- xoxb- xoxc- xoxe- xoxo- xoxp- xoxr- xoxs-",
    token: /xox[abceoprs]-(?:[A-Za-z0-9]{1,4}-)?[A-Za-z0-9-]{20,300}/y,
    random: true,
  },
  { name: "slack-token", keys: "xoxe.xoxb- xoxe.xoxp-", token: /xoxe\.xox[bp]-\d-[A-Za-z0-9]{100,260}/y },
  { name: "slack-token", keys: "xapp-", token: /xapp-\d-[A-Za-z0-9]+-\d+-[A-Za-z0-9]{32,100}/y },
  {
    name: "stripe-key",
    keys: "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_",
    token: /[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,250}/y,
    random: true,
  },
  { name: "webhook-secret", keys: "whsec_", token: /whsec_[A-Za-z0-9+/=]{24,100}/y, random: true },
  { name: "anthropic-key", keys: "sk-ant-", token: /sk-ant-[a-z]{2,8}\d{2}-[A-Za-z0-9_-]{60,250}/y },
  { name: "openrouter-key", keys: "sk-or-v1-", token: /sk-or-v1-[0-9a-f]{64}/y },
  {
    name: "openai-key",
    keys: "sk-proj- sk-svcacct- sk-admin- sk-None-",
    token: /sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{40,300}/y,
  },
  { name: "openai-key", keys: "T3BlbkFJ", token: /sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}/y, back: 23 },
  {
    name: "sk-key",
    keys: "sk-",
    token: /sk-(?:[a-z]{2,8}-)?[A-Za-z0-9]{28,200}(?![A-Za-z0-9-])/y,
    boundary: true,
    random: true,
  },
  { name: "langfuse-key", keys: "sk-lf-", token: /sk-lf-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/y },
  { name: "google-api-key", keys: "AIza", token: /AIza[A-Za-z0-9_-]{35}/y },
  { name: "google-api-key", keys: "AQ.Ab", token: /AQ\.Ab[A-Za-z0-9_-]{40,120}/y, boundary: true },
  { name: "google-oauth-token", keys: "ya29.", token: /ya29\.[A-Za-z0-9_.-]{30,2000}/y, boundary: true },
  { name: "google-oauth-secret", keys: "GOCSPX-", token: /GOCSPX-[A-Za-z0-9_-]{28}/y },
  {
    name: "azure-client-secret",
    keys: "0Q~ 1Q~ 2Q~ 3Q~ 4Q~ 5Q~ 6Q~ 7Q~ 8Q~ 9Q~",
    token: /[A-Za-z0-9_.~-]{3}\dQ~[A-Za-z0-9_.~-]{31,34}(?![A-Za-z0-9_.~-])/y,
    back: 3,
  },
  { name: "azure-devops-token", keys: "AZDO", token: /[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}/y, back: 76 },
  { name: "npm-token", keys: "npm_", token: /npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])/y },
  { name: "pypi-token", keys: "pypi-AgE", token: /pypi-AgE[A-Za-z0-9_-]{50,1000}/y },
  { name: "docker-token", keys: "dckr_pat_ dckr_oat_", token: /dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,64}/y },
  { name: "huggingface-token", keys: "hf_", token: /hf_[A-Za-z]{34}(?![A-Za-z0-9_])/y, boundary: true, random: true },
  {
    name: "huggingface-token",
    keys: "hf_",
    token: /hf_[A-Za-z0-9]{34,50}(?![A-Za-z0-9_])/y,
    boundary: true,
    random: true,
  },
  {
    name: "huggingface-token",
    keys: "api_org_",
    token: /api_org_[A-Za-z]{34}(?![A-Za-z0-9_])/y,
    boundary: true,
    random: true,
  },
  { name: "replicate-token", keys: "r8_", token: /r8_[A-Za-z0-9]{37}(?![A-Za-z0-9])/y, boundary: true },
  { name: "sendgrid-key", keys: "SG.", token: /SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{40,64}/y, boundary: true },
  { name: "mailgun-key", keys: "key-", token: /key-[0-9a-f]{32}(?![0-9a-z])/y, boundary: true },
  { name: "mailchimp-key", keys: "-us", token: /(?<![0-9a-f])[0-9a-f]{32}-us\d{1,2}(?!\w)/y, back: 32 },
  { name: "brevo-key", keys: "xkeysib- xsmtpsib-", token: /x(?:keysib|smtpsib)-[0-9a-f]{64}-[A-Za-z0-9]{16}/y },
  {
    name: "resend-key",
    keys: "re_",
    token: /re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}(?![A-Za-z0-9_])/y,
    boundary: true,
    random: true,
  },
  {
    name: "shopify-token",
    keys: "shpat_ shpca_ shppa_ shpss_ shpua_",
    token: /shp(?:at|ca|pa|ss|ua)_[0-9A-Fa-f]{32}/y,
  },
  { name: "square-token", keys: "sq0atp- sq0csp- sq0idp-", token: /sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,60}/y },
  {
    name: "square-token",
    keys: "EAAA",
    token: /EAAA[A-Za-z0-9_-]{60}(?![A-Za-z0-9_-])/y,
    boundary: true,
    random: true,
  },
  {
    name: "facebook-token",
    keys: "EAA",
    token: /EAA[A-Za-z0-9]{90,400}(?![A-Za-z0-9])/y,
    boundary: true,
    random: true,
  },
  {
    name: "databricks-token",
    keys: "dapi",
    token: /dapi[0-9a-f]{32}(?:-\d)?(?![0-9A-Za-z])/y,
    boundary: true,
  },
  { name: "digitalocean-token", keys: "doo_v1_ dop_v1_ dor_v1_", token: /do[opr]_v1_[0-9a-f]{64}/y },
  {
    name: "heroku-key",
    keys: "HRKU-",
    token: /HRKU-(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9_-]{58,64})/y,
  },
  { name: "cloudflare-token", keys: "cfut_ cfat_ cfk_", token: /cf(?:ut|at|k)_[A-Za-z0-9_-]{40,64}/y, boundary: true },
  {
    name: "cloudflare-token",
    keys: "v1.0-",
    token: /v1\.0-[0-9a-f]{24}-[0-9a-f]{140,160}/y,
    boundary: true,
  },
  { name: "linear-key", keys: "lin_api_ lin_oauth_", token: /lin_(?:api|oauth)_[A-Za-z0-9]{32,70}/y },
  { name: "notion-token", keys: "ntn_", token: /ntn_[A-Za-z0-9]{40,60}/y, boundary: true },
  {
    name: "notion-token",
    keys: "secret_",
    token: /secret_[A-Za-z0-9]{43}(?![A-Za-z0-9_])/y,
    boundary: true,
    random: true,
  },
  { name: "figma-token", keys: "figd_ figo_ figp_ figu_", token: /fig[dopu]_[A-Za-z0-9_-]{38,60}/y, boundary: true },
  { name: "atlassian-token", keys: "ATATT3 ATCTT3", token: /AT(?:ATT|CTT)3[A-Za-z0-9_=-]{60,300}/y },
  {
    name: "bitbucket-token",
    keys: "ATBB",
    token: /ATBB[A-Za-z0-9]{28,32}(?![A-Za-z0-9])/y,
    boundary: true,
    random: true,
  },
  { name: "sentry-token", keys: "sntrys_ sntryu_", token: /sntry[su]_[A-Za-z0-9+/=_-]{60,600}/y },
  {
    name: "newrelic-key",
    keys: "NRAK- NRII- NRIQ- NRAL- NRJS- NRRA-",
    token: /NR(?:AK|II|IQ|AL|JS|RA)-[A-Za-z0-9_-]{19,42}/y,
    boundary: true,
  },
  { name: "newrelic-key", keys: "NRAL", token: /[0-9a-f]{36}NRAL/y, back: 36 },
  { name: "grafana-token", keys: "glsa_", token: /glsa_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}/y },
  { name: "grafana-token", keys: "glc_", token: /glc_[A-Za-z0-9+/]{32,400}={0,2}/y, boundary: true },
  { name: "grafana-token", keys: "eyJrIjoi", token: /eyJrIjoi[A-Za-z0-9]{60,400}={0,2}/y, boundary: true },
  {
    name: "supabase-token",
    keys: "sbp_ sb_secret_",
    token: /sb(?:p_(?:oauth_|v0_)?[0-9a-f]{40}|_secret_[A-Za-z0-9_-]{20,60})/y,
    boundary: true,
  },
  {
    name: "vault-token",
    keys: "hvs. hvb. hvr.",
    token: /hv[sbr]\.[A-Za-z0-9_-]{24,300}/y,
    boundary: true,
    random: true,
  },
  {
    name: "terraform-token",
    keys: ".atlasv1.",
    token: /[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}/y,
    back: 14,
  },
  {
    name: "doppler-token",
    keys: "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
    token: /dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}/y,
    boundary: true,
  },
  {
    name: "planetscale-token",
    keys: "pscale_tkn_ pscale_oauth_ pscale_pw_",
    token: /pscale_(?:tkn|oauth|pw)_[A-Za-z0-9=._-]{32,64}/y,
  },
  { name: "postman-key", keys: "PMAK-", token: /PMAK-[0-9a-f]{24}-[0-9a-f]{34}/y },
  { name: "airtable-token", keys: "pat", token: /pat[A-Za-z0-9]{14}\.[0-9a-f]{64}/y, boundary: true },
  {
    name: "dropbox-token",
    keys: "sl.",
    token: /sl\.(?:u\.)?[A-Za-z0-9_-]{100,1500}/y,
    boundary: true,
    random: true,
  },
  { name: "rubygems-key", keys: "rubygems_", token: /rubygems_[0-9a-f]{48}/y },
  {
    name: "crates-token",
    keys: "cio",
    token: /cio[A-Za-z0-9]{32}(?![A-Za-z0-9])/y,
    boundary: true,
    random: true,
  },
  { name: "nuget-key", keys: "oy2", token: /oy2[a-z0-9]{43}(?![A-Za-z0-9])/y, boundary: true },
  { name: "age-key", keys: "AGE-SECRET-KEY-1", token: /AGE-SECRET-KEY-1[A-Z0-9]{58}/y },
  {
    name: "jwt",
    keys: "eyJ",
    token: /eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]{16,})?/y,
    boundary: true,
  },
  {
    name: "jwt",
    keys: "eyJ",
    token: /eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{20,}/y,
    boundary: true,
  },
  { name: "perplexity-key", keys: "pplx-", token: /pplx-[A-Za-z0-9]{40,64}/y, boundary: true },
  { name: "groq-key", keys: "gsk_", token: /gsk_[A-Za-z0-9]{48,60}/y, boundary: true },
  { name: "xai-key", keys: "xai-", token: /xai-[A-Za-z0-9]{70,90}/y, boundary: true },
  { name: "fireworks-key", keys: "fw_", token: /fw_[A-Za-z0-9]{22,30}(?![A-Za-z0-9_])/y, boundary: true, random: true },
  { name: "pinecone-key", keys: "pcsk_", token: /pcsk_[A-Za-z0-9]{4,10}_[A-Za-z0-9]{50,80}/y },
  {
    name: "langsmith-key",
    keys: "lsv2_pt_ lsv2_sk_ ls__",
    token: /ls(?:v2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}|__[0-9a-f]{32})/y,
    boundary: true,
  },
  {
    name: "tavily-key",
    keys: "tvly-",
    token: /tvly-(?:dev-|prod-)?[A-Za-z0-9-]{28,60}/y,
    boundary: true,
    random: true,
  },
  { name: "context7-key", keys: "ctx7sk-", token: /ctx7sk-[0-9a-f-]{32,40}/y, boundary: true },
  { name: "firecrawl-key", keys: "fc-", token: /fc-[0-9a-f]{32}(?![0-9a-z])/y, boundary: true },
  { name: "e2b-key", keys: "e2b_", token: /e2b_[0-9a-f]{40}(?![0-9a-z])/y, boundary: true },
  { name: "elevenlabs-key", keys: "sk_", token: /sk_[0-9a-f]{48}(?![0-9a-z])/y, boundary: true },
  { name: "posthog-key", keys: "phx_", token: /phx_[A-Za-z0-9]{40,60}/y, boundary: true },
  {
    name: "netlify-token",
    keys: "nfp_ nfc_ nfo_ nfu_",
    token: /nf[pcou]_[A-Za-z0-9]{36,40}(?![A-Za-z0-9])/y,
    boundary: true,
  },
  {
    name: "vercel-token",
    keys: "vcp_ vci_ vcr_ vck_ vca_",
    token: /vc[pirka]_[A-Za-z0-9]{24,80}/y,
    boundary: true,
    random: true,
  },
  { name: "vercel-token", keys: "vercel_blob_rw_", token: /vercel_blob_rw_[A-Za-z0-9]{8,24}_[A-Za-z0-9]{24,40}/y },
  { name: "fly-token", keys: "fo1_", token: /fo1_[A-Za-z0-9_-]{43}/y, boundary: true },
  { name: "fly-token", keys: "fm1 fm2", token: /fm[12][ar]?_[A-Za-z0-9+/=]{100,3000}/y, boundary: true },
  { name: "render-key", keys: "rnd_", token: /rnd_[A-Za-z0-9]{28,40}(?![A-Za-z0-9_])/y, boundary: true, random: true },
  { name: "tailscale-key", keys: "tskey-", token: /tskey-[a-z]{2,12}-[A-Za-z0-9]{8,24}-[A-Za-z0-9]{20,40}/y },
  { name: "pulumi-token", keys: "pul-", token: /pul-[0-9a-f]{40}(?![0-9a-z])/y, boundary: true },
  { name: "buildkite-token", keys: "bkua_ bkpt_ bkct_", token: /bk(?:ua|pt|ct)_[A-Za-z0-9]{40}/y, boundary: true },
  { name: "circleci-token", keys: "CCIPAT_ CCIPRJ_", token: /CCIP(?:AT|RJ)_[A-Za-z0-9]{20,24}_[0-9a-f]{40}/y },
  { name: "sonar-token", keys: "sqp_ squ_ sqa_", token: /sq[pua]_[0-9a-f]{40}(?![0-9a-z])/y, boundary: true },
  {
    name: "sourcegraph-token",
    keys: "sgp_",
    token: /sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}(?![0-9a-z])/y,
    boundary: true,
  },
  { name: "contentful-token", keys: "CFPAT-", token: /CFPAT-[A-Za-z0-9_-]{43}/y },
  { name: "dynatrace-token", keys: "dt0", token: /dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}/y },
  { name: "onepassword-token", keys: "ops_eyJ", token: /ops_eyJ[A-Za-z0-9+/=_-]{200,2000}/y, boundary: true },
  { name: "jfrog-token", keys: "cmVmdGtuO", token: /cmVmdGtuO[A-Za-z0-9]{40,80}/y, boundary: true },
  { name: "jfrog-token", keys: "AKCp", token: /AKCp[A-Za-z0-9]{60,80}(?![A-Za-z0-9])/y, boundary: true },
  { name: "openshift-token", keys: "sha256~", token: /sha256~[A-Za-z0-9_-]{43}/y, boundary: true },
  {
    name: "hubspot-token",
    keys: "pat-na pat-eu pat-ap",
    token: /pat-(?:na|eu|ap)\d-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/y,
    boundary: true,
  },
  {
    name: "alibaba-key",
    keys: "LTAI",
    token: /LTAI[A-Za-z0-9]{16,20}(?![A-Za-z0-9])/y,
    boundary: true,
    random: true,
  },
  { name: "easypost-key", keys: "EZAK EZTK", token: /EZ(?:AK|TK)[0-9A-Za-z]{54}/y, boundary: true },
  { name: "shippo-token", keys: "shippo_live_ shippo_test_", token: /shippo_(?:live|test)_[0-9a-f]{40}/y },
  { name: "razorpay-key", keys: "rzp_live_ rzp_test_", token: /rzp_(?:live|test)_[A-Za-z0-9]{14,24}/y, boundary: true },
  { name: "readme-key", keys: "rdme_", token: /rdme_[a-z0-9]{70}/y },
  { name: "prefect-key", keys: "pnu_ pnb_", token: /pn[ub]_[A-Za-z0-9]{36}(?![A-Za-z0-9])/y, boundary: true },
  { name: "cursor-key", keys: "crsr_", token: /crsr_[A-Za-z0-9_-]{20,200}/y, boundary: true, random: true },
  { name: "cursor-key", keys: "key_", token: /key_[0-9a-f]{64}(?![0-9a-z])/y, boundary: true },
  { name: "neon-key", keys: "napi_", token: /napi_[a-z0-9]{64}(?![a-z0-9])/y, boundary: true, random: true },
  { name: "gitlab-token", keys: "GR1348941", token: /GR1348941[A-Za-z0-9_-]{20}/y, boundary: true },
  { name: "octopus-key", keys: "API-", token: /API-[A-Z0-9]{26,34}(?![A-Za-z0-9])/y, boundary: true, random: true },
  {
    name: "plaid-token",
    keys: "access-sandbox- access-development- access-production-",
    token: /access-(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/y,
  },
  { name: "flutterwave-key", keys: "FLWSECK", token: /FLWSECK(?:_TEST)?-[0-9A-Za-z]{12,40}(?:-X)?/y },
  { name: "newrelic-key", keys: "NRBR-", token: /NRBR-[0-9a-f]{19}/y, boundary: true },
  { name: "newrelic-key", keys: "-NRMA", token: /(?:AA[0-9a-f]{40}|eu01xx[0-9a-f]{36})-NRMA/y, back: 42 },
  { name: "maxmind-key", keys: "_mmk", token: /[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?![A-Za-z0-9])/y, back: 36 },
  {
    name: "onepassword-key",
    keys: "A3-",
    token: /A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![A-Za-z0-9])/y,
    boundary: true,
  },
  { name: "clojars-token", keys: "CLOJARS_", token: /CLOJARS_[a-z0-9]{60}/y },
  { name: "appsync-key", keys: "da2-", token: /da2-[a-z0-9]{26}(?![A-Za-z0-9])/y, boundary: true, random: true },
  { name: "zoho-token", keys: "1000.", token: /1000\.[0-9a-f]{32}\.[0-9a-f]{32}(?![0-9a-f])/y, boundary: true },
  {
    name: "harness-token",
    keys: "pat. sat.",
    token: /[ps]at\.[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}(?![A-Za-z0-9])/y,
    boundary: true,
  },
  { name: "intra42-secret", keys: "s-s4t2ud- s-s4t2af-", token: /s-s4t2(?:ud|af)-[0-9a-f]{64}/y },
  { name: "clickhouse-key", keys: "4b1d", token: /4b1d[A-Za-z0-9]{38}(?![A-Za-z0-9])/y, boundary: true, random: true },
  { name: "bannerbear-key", keys: "bb_pr_ bb_ma_", token: /bb_(?:pr|ma)_[0-9a-f]{30}(?![0-9a-z])/y, boundary: true },
  { name: "spectral-key", keys: "spu-", token: /spu-[a-z0-9]{32}(?![a-z0-9])/y, boundary: true, random: true },
  {
    name: "settlemint-token",
    keys: "sm_pat_ sm_aat_ sm_sat_",
    token: /sm_[pas]at_[A-Za-z0-9]{16}(?![A-Za-z0-9])/y,
    boundary: true,
  },
  { name: "lob-key", keys: "live_ test_", token: /(?:live|test)_[0-9a-f]{35}(?![0-9a-z])/y, boundary: true },
  { name: "adafruit-key", keys: "aio_", token: /aio_[A-Za-z0-9]{28}(?![A-Za-z0-9])/y, boundary: true },
  {
    name: "amazon-mws-token",
    keys: "amzn.mws.",
    token: /amzn\.mws\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/y,
    boundary: true,
  },
  {
    name: "defined-networking-key",
    keys: "dnkey-",
    token: /dnkey-[a-z0-9_=-]{26}-[a-z0-9_=-]{52}/y,
    boundary: true,
  },
  { name: "frameio-token", keys: "fio-u-", token: /fio-u-[A-Za-z0-9_=-]{64}/y, boundary: true },
  {
    name: "stackhawk-key",
    keys: "hawk.",
    token: /hawk\.[A-Za-z0-9_-]{20}\.[A-Za-z0-9_-]{20}(?![A-Za-z0-9_-])/y,
    boundary: true,
    random: true,
  },
  {
    name: "wakatime-key",
    keys: "waka_",
    token: /waka_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/y,
    boundary: true,
  },
  {
    name: "wallet-key",
    keys: "xprv yprv zprv tprv",
    token: /[xyzt]prv[A-Za-z0-9]{100,112}(?![A-Za-z0-9])/y,
    boundary: true,
    random: true,
  },
  {
    name: "encoded-secret",
    keys: "PASSWORD= _SECRET= _TOKEN= API_KEY= SECRET_KEY= password= api_key= password:",
    token: /[A-Za-z_]{5,12}[=:] ?["']?[^\s"']{8,512}/y,
    encodedOnly: true,
  },
  {
    name: "private-key",
    keys: "2d2d2d2d2d424547494e20",
    token: /(?:2d){5}424547494e20(?:[0-9a-f]{2}){0,24}?50524956415445204b4559[0-9a-f]{20,20000}/y,
  },
  {
    name: "private-key",
    keys: "b3BlbnNzaC1rZXktdjE MIIEvQIBADANBgkqhkiG9w0BAQEFAASC MIIEvgIBADANBgkqhkiG9w0BAQEFAASC MIIEvwIBADANBgkqhkiG9w0BAQEFAASC MIIEowIBAAKCAQEA MIIEpAIBAAKCAQEA MIIEpQIBAAKCAQEA MIIJQgIBADANBgkqhkiG9w0BAQEFAASC MIIJQwIBADANBgkqhkiG9w0BAQEFAASC MIIJKAIBAAKCAgEA MIIJKQIBAAKCAgEA MIIJKgIBAAKCAgEA MHcCAQEEI MC4CAQAwBQYDK2VwBCIEI",
    token:
      /(?:b3BlbnNzaC1rZXktdjE|MII(?:E|J)[A-Za-z0-9]{3}IBA|MHcCAQEEI|MC4CAQAwBQYDK2VwBCIEI)[A-Za-z0-9+/]{20,20000}={0,2}/y,
    boundary: true,
  },
  {
    name: "private-key",
    keys: "LS0tLS1CRUdJTi",
    token:
      /LS0tLS1CRUdJTi(?:BQUklWQVRFIEtFWS|BSU0EgUFJJVkFURS|BFQyBQUklWQVRFIE|BPUEVOU1NIIFBSSV|BFTkNSWVBURUQgUF|BEU0EgUFJJVkFURS|BQR1AgUFJJVkFURS)[A-Za-z0-9+/=]{20,}/y,
  },
]

/** Tokens whose mark ends in a character outside the alphabet of runs. `before` is matched against the text up to the run. */
export const EDGE_RULES: { name: string; edge: string; before: RegExp; token: RegExp }[] = [
  { name: "telegram-token", edge: ":", before: /(?<!\d)\d{8,10}:$/, token: /AA[A-Za-z0-9_-]{18,33}(?![A-Za-z0-9_-])/y },
  {
    name: "asana-token",
    edge: ":",
    before: /(?<!\d)\d\/\d{15,17}(?:\/\d{15,17})?:$/,
    token: /[0-9a-f]{32}(?![0-9a-zA-Z])/y,
  },
  { name: "facebook-token", edge: "|", before: /(?<!\d)\d{15,16}\|$/, token: /[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_-])/y },
  {
    name: "salesforce-token",
    edge: "!",
    before: /(?<![A-Za-z0-9])00[A-Za-z0-9]{13}!$/,
    token: /[A-Za-z0-9_.]{60,120}/y,
  },
  {
    name: "google-refresh-token",
    edge: "/",
    before: /(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))1\/\/$/,
    token: /0[A-Za-z0-9_-]{40,200}/y,
  },
]

/** Tokens that are recognised only by their shape, at the beginning of a run. */
export const RUN_RULES: { name: string; first: string; token: RegExp }[] = [
  { name: "twilio-key", first: "S", token: /SK[0-9a-f]{32}(?![0-9A-Za-z])/y },
  {
    name: "mailgun-key",
    first: "0123456789abcdef",
    token: /[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![0-9A-Za-z-])/y,
  },
  {
    name: "discord-token",
    first: "MNO",
    token: /[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_.-])/y,
  },
]

/** URLs whose path is the password. Matched after `://`. */
export const WEBHOOK_RULES: { name: string; url: RegExp }[] = [
  {
    name: "slack-webhook",
    url: /hooks\.slack(?:-gov)?\.com\\?\/(?:services|workflows|triggers)\\?\/([A-Za-z0-9/+\\]{20,120})/y,
  },
  {
    name: "discord-webhook",
    url: /(?:(?:ptb|canary)\.)?discord(?:app)?\.com\\?\/api\\?\/(?:v\d+\\?\/)?webhooks\\?\/(\d{15,21}\\?\/[A-Za-z0-9_-]{20,80})/y,
  },
  { name: "telegram-token", url: /api\.telegram\.org\\?\/bot(\d{8,10}:[A-Za-z0-9_-]{20,40})/y },
  { name: "teams-webhook", url: /[a-z0-9-]{1,60}\.webhook\.office\.com\\?\/webhookb2\\?\/([A-Za-z0-9@/\\-]{60,300})/y },
  { name: "zapier-webhook", url: /hooks\.zapier\.com\\?\/hooks\\?\/catch\\?\/(\d{4,10}\\?\/[A-Za-z0-9]{5,12})/y },
]
