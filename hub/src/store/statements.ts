import { MEMBER, TENANT } from "./scope.ts"

/** The title of a conversation `c`. The head is read only if the title column is out of date. */
export const TITLE_COLUMNS =
  "case when c.title_rev = c.rev then c.title end as title, case when c.title_rev = c.rev then null else c.head end as head"

/** The queries for conversations in a scope. */
export type Statements = ReturnType<typeof statementsIn>

export function statementsIn(SCOPE: string) {
  const VISIBLE = `(select * from hub.conversation where ${SCOPE})`
  const COLUMNS = `c.id, m.name as owner, c.source, c.native_id, p.key as project, c.project as project_id, c.author, c.visibility, c.kind,
    c.models, c.message_count, c.copied_count, c.superseded, c.estimated_tokens, c.text_bytes, c.started_at, c.ended_at,
    c.first_at, c.last_at, c.head, k.wrapped`
  const FROM = `${VISIBLE} c
    join hub.member m on m.tenant = c.tenant and m.id = c.author
    join hub.project p on p.tenant = c.tenant and p.id = c.project
    join hub_key.conversation_key k on k.tenant = c.tenant and k.conversation = c.id`
  const ALL = `select ${COLUMNS} from ${FROM} where c.rev > 0 order by c.id`
  /**
   * Selects from the conversations of refs: their owners ($1), sources ($2) and ids ($3). Each ref is looked up separately, so
   * the number of other conversations does not matter.
   */
  const FROM_REFS = `unnest($1::text[], $2::text[], $3::text[]) as one (owner, source, native_id)
    join hub.member m on m.tenant = ${TENANT} and m.name = one.owner
    cross join lateral (select * from ${VISIBLE} visible where tenant = m.tenant and author = m.id and source = one.source
      and native_id = one.native_id and rev > 0 limit 1) c
    join hub.project p on p.tenant = c.tenant and p.id = c.project
    join hub_key.conversation_key k on k.tenant = c.tenant and k.conversation = c.id`
  const NAMED = `select ${COLUMNS} from ${FROM_REFS}`
  const TITLES = `select c.id, m.name as owner, c.source, c.native_id, k.wrapped, ${TITLE_COLUMNS} from ${FROM_REFS}`
  const RESOLVED = `select ${COLUMNS} from ${FROM} where c.rev > 0 and starts_with(c.native_id, $1)
    and ($2::text is null or c.source = $2) and ($3::text is null or m.name = $3) order by c.id limit 200`
  /**
   * The last change of each conversation, with the conversation's name if it still exists. The parameters are the number after
   * which to start ($1) and the limit ($2). With `not exists` instead of the maximum, PostgreSQL would read all changes each time.
   */
  const CHANGES = `select ch.conversation, ch.seq, ch.deleted, c.owner, c.source, c.native_id from (
      select * from hub.change ch where ch.tenant = ${TENANT} and ch.seq > $1 and ch.seq = (select max(later.seq) from hub.change later
        where later.tenant = ch.tenant and later.conversation = ch.conversation)
      order by ch.seq limit $2) ch
    left join lateral (select m.name as owner, c.source, c.native_id from ${VISIBLE} c
      join hub.member m on m.tenant = c.tenant and m.id = c.author
      where c.tenant = ch.tenant and c.id = ch.conversation and c.rev > 0 limit 1) c on true
    order by ch.seq`
  /**
   * The condition that a conversation may be listed. A private one is listed only from inside its project ($1), as on a laptop.
   * Questions to the hub have no project ($1 is empty), and also list the member's own private conversations.
   */
  const IS_OPEN = `(c.visibility <> 'private' or p.key = $1 or ($1 = '' and c.author = ${MEMBER}))`
  const IS_LISTED = `c.rev > 0 and c.kind <> 'document' and ${IS_OPEN}
    and ($2::text is null or position(lower($2) in lower(p.key)) > 0)
    and ($3::text is null or c.source = $3)
    and ($4::bigint is null or c.ended_at >= $4)
    and ($5::bigint is null or c.started_at <= $5)
    and ($6::text is null or p.key = $6)
    and ($7::text is null or (m.name = $7 and c.source = $8 and (c.native_id = $9 or c.parent_id = $9)))
    and ($10::text[] is null or (m.name, c.source, c.native_id) in (select * from unnest($10::text[], $11::text[], $12::text[])))`
  const LISTED = `select ${COLUMNS} from ${FROM} where ${IS_LISTED} and ($13::text[] is null or c.kind = any ($13))
    order by coalesce(c.ended_at, 0) desc, c.native_id collate "C" limit $14 offset $15`
  const COUNT_LISTED = `select c.kind, count(*) as count from ${FROM} where ${IS_LISTED} group by c.kind`
  const SPANS = `select ${COLUMNS} from ${FROM} where ${IS_LISTED} and ($13::text[] is null or c.kind = any ($13)) order by c.id`
  const USING_MODEL = `select ${COLUMNS} from ${FROM} where c.rev > 0
    and exists (select from unnest(c.models) as model where position($1 in lower(model)) > 0) order by c.id`
  const COMMITTING = `select ${COLUMNS} from ${FROM} where c.rev > 0 and c.commit_count > 0
    and ${IS_OPEN} order by c.id`
  /** Conversations in progress at a time ($2), and enough of those before and after it for the requested number of messages. */
  const AROUND = `select ${COLUMNS} from ${FROM} where c.rev > 0 and c.project = $1 and c.last_at is not null and (
    (c.first_at <= $2 and c.last_at >= $2) or c.id = $5
    or c.id in (select id from ${VISIBLE} visible where rev > 0 and project = $1 and last_at < $2 order by last_at desc limit $3 + 100)
    or c.id in (select id from ${VISIBLE} visible where rev > 0 and project = $1 and first_at > $2 order by first_at limit $4 + 100))`
  const COUNTED = "sum((case when superseded then 0 else message_count end) - copied_count)::bigint"
  const STATS = `with all_of as (select * from ${VISIBLE} visible where rev > 0 and kind <> 'document')
    select count(*) as conversations, coalesce(${COUNTED}, 0) as messages, coalesce(sum(estimated_tokens), 0)::bigint as estimated_tokens,
      coalesce(sum(text_bytes), 0)::bigint as text_bytes, min(least(started_at, ended_at)) as earliest,
      max(greatest(started_at, ended_at)) as latest,
      (select jsonb_object_agg(source, n) from (select source, count(*) as n from all_of group by source) x) as sources,
      (select jsonb_object_agg(kind, n) from (select kind, count(*) as n from all_of group by kind) x) as kinds
    from all_of`
  const SOURCES = `select distinct source from ${VISIBLE} visible where rev > 0 order by source`
  const SOURCE_REPORT = `select source, sum(n)::bigint as conversations, sum(messages)::bigint as messages,
      jsonb_object_agg(kind, n) as kinds, max(last_at) as last_at
    from (select source, kind, count(*) as n, ${COUNTED} as messages, max(ended_at) as last_at
      from ${VISIBLE} visible where rev > 0 group by source, kind) x group by source order by source`
  const PROJECTS = `select key from hub.project p where p.tenant = ${TENANT} and exists (select from ${VISIBLE} c where c.project = p.id and c.rev > 0) order by key`
  const BUSIEST = `select p.key from ${VISIBLE} c join hub.project p on p.tenant = c.tenant and p.id = c.project
    where c.rev > 0 and c.kind not in ('subagent', 'document') group by p.key order by count(*) desc, p.key limit $1`
  const CHILDREN = `select ${COLUMNS} from ${FROM} where c.rev > 0 and m.name = $1 and c.source = $2 and c.parent_id = $3`
  const OF_OWNER_AND_SOURCE = `select ${COLUMNS} from ${FROM} where c.rev > 0 and m.name = $1 and c.source = $2`
  return {
    ALL,
    NAMED,
    TITLES,
    RESOLVED,
    CHANGES,
    LISTED,
    COUNT_LISTED,
    SPANS,
    USING_MODEL,
    COMMITTING,
    AROUND,
    STATS,
    SOURCES,
    SOURCE_REPORT,
    PROJECTS,
    BUSIEST,
    CHILDREN,
    OF_OWNER_AND_SOURCE,
  }
}
