-- Every movement of money has the document that caused it, checked when the transaction commits, whichever program wrote
-- it: the kind of a movement binds its two sides and the row it belongs to.

-- Runs as the owner of the schema: no role may read every kind of document.
create function refuse_undocumented() returns trigger
language plpgsql security definer
set search_path = public, pg_temp
as $$
declare
  written bigint;
  moved record;
  gives text;
  gets text;
  holder bigint;
  total bigint;
  legs integer;
  documented boolean;
begin
  written := to_jsonb(new) ->> coalesce(tg_argv[0], 'transaction_id');
  if written is null then
    return null;
  end if;
  select kind, reverses into moved from ledger_transactions where id = written;
  if tg_table_name <> 'ledger_entries' and not moved.kind = any (string_to_array(tg_argv[1], ' ')) then
    raise exception 'a % names a % of the ledger: % is a %', tg_table_name, tg_argv[1], written, moved.kind
      using errcode = 'check_violation', constraint = 'document_names_its_kind';
  end if;
  select
    count(*),
    max(a.kind) filter (where e.amount < 0),
    max(a.kind) filter (where e.amount > 0),
    max(a.owner_id),
    max(e.amount)
  into legs, gives, gets, holder, total
  from ledger_entries e
  join ledger_accounts a on a.id = e.account_id
  where e.transaction_id = written;
  documented := case
    when moved.kind = 'reversal' then exists (
      select
      from reversal_proposals
      where reversal_id = written and transaction_id = moved.reverses
    )
    when legs <> 2 then false
    when moved.kind = 'purchase' and (gives, gets) = ('wallet', 'revenue') then exists (
      select
      from purchases
      where transaction_id = written and account_id = holder and paid_micros = total
    )
    when moved.kind = 'suspense' and (gives, gets) = ('cash_bank', 'suspense') then exists (
      select
      from bank_lines
      where suspense_transaction_id = written and suspense_micros = total
    )
    when moved.kind = 'suspense' and (gives, gets) = ('suspense', 'cash_bank') then exists (
      select
      from bank_lines l
      join bank_returns r on r.line_id = l.id and r.approved_by is not null
      where l.return_transaction_id = written and l.suspense_micros = total
    )
    when gets = 'wallet' and (
      (moved.kind = 'placement' and gives = 'suspense') or (moved.kind = 'topup' and starts_with(gives, 'cash_'))
    ) then exists (
      select
      from topups t
      where t.transaction_id = written
        and t.account_id = holder
        and t.amount_micros = total
        and case gives
          when 'cash_onchain' then t.method = 'usdt' and total = (
            select sum(d.micros)
            from chain_deposits d
            where d.topup_id = t.id and d.account_id = holder
          )
          when 'cash_payapp' then t.method = 'binance-pay' and exists (
            select
            from payment_app_orders o
            where o.topup_id = t.id and o.state = 'paid' and o.amount_micros = total
          )
          -- no real house: what is bought with demo money is worth nothing
          when 'cash_demo' then t.method = 'demo' and not exists (select from houses where enabled and not demo)
          else t.method = 'bank' and exists (
            select
            from bank_lines l
            join bank_matches m on m.line_id = l.id and m.approved_by is not null
            where l.credit_transaction_id = written
              and m.topup_id = t.id
              and m.micros = total
              and (gives = 'suspense') = (l.suspense_transaction_id is not null)
          )
        end
    )
    else false
  end;
  if not documented then
    raise exception 'a movement of money has the document that caused it: % (%, from % to %) has none', written, moved.kind, gives, gets
      using errcode = 'check_violation', constraint = 'transaction_has_its_document';
  end if;
  return null;
end
$$;
revoke execute on function refuse_undocumented() from public;
comment on function refuse_undocumented is
  'trigger: topup = a credited top-up with its bank line, deposits or paid order, or of a demo whose houses are all demo houses; placement = a bank line out of suspense; suspense = a bank line held or returned; purchase = a purchase; reversal = an approved proposal';

create constraint trigger transaction_has_its_document after insert on ledger_entries
  deferrable initially deferred for each row execute function refuse_undocumented();
create constraint trigger topup_names_its_credit after insert or update on topups
  deferrable initially deferred for each row execute function refuse_undocumented('transaction_id', 'topup placement');
create constraint trigger purchase_names_its_payment after insert on purchases
  deferrable initially deferred for each row execute function refuse_undocumented('transaction_id', 'purchase');
create constraint trigger bank_line_names_its_suspense after insert or update on bank_lines
  deferrable initially deferred for each row execute function refuse_undocumented('suspense_transaction_id', 'suspense');
create constraint trigger bank_line_names_its_credit after insert or update on bank_lines
  deferrable initially deferred for each row execute function refuse_undocumented('credit_transaction_id', 'topup placement');
create constraint trigger bank_line_names_its_return after insert or update on bank_lines
  deferrable initially deferred for each row execute function refuse_undocumented('return_transaction_id', 'suspense');
create constraint trigger proposal_names_its_reversal after update on reversal_proposals
  deferrable initially deferred for each row execute function refuse_undocumented('reversal_id', 'reversal');
