/*
 * Reads the driver's values of ActiveRecord's loaded records, without casting them. The instance variables are those of
 * ActiveModel::LazyAttributeSet; test/contract_test.rb checks them.
 */
#include "loaded.h"

static ID id_attributes, id_casted_values, id_values, id_key, id_aref;
static VALUE text, json;

/* Qundef if the reader of the record has to read the value. */
static VALUE loaded_value(VALUE name, VALUE coder, VALUE assigned, VALUE casted, VALUE values)
{
    if (RHASH_SIZE(assigned) && rb_hash_lookup2(assigned, name, Qundef) != Qundef) return Qundef;
    if (RHASH_SIZE(casted) && (coder == text || coder == json)) {
        /* What was cast can be changed in place: the String is a copy of the driver's. */
        VALUE value = rb_hash_lookup2(casted, name, Qundef);
        if (value != Qundef) return coder == text ? value : Qundef;
    }
    if (RB_TYPE_P(values, T_HASH)) return rb_hash_lookup2(values, name, Qundef);
    return RTEST(rb_funcall(values, id_key, 1, name)) ? rb_funcall(values, id_aref, 1, name) : Qundef;
}

static VALUE loaded_row(VALUE set, VALUE names, VALUE coders)
{
    VALUE assigned = rb_ivar_get(set, id_attributes), casted = rb_ivar_get(set, id_casted_values), values = rb_ivar_get(set, id_values);
    VALUE row;
    if (!RB_TYPE_P(assigned, T_HASH) || !RB_TYPE_P(casted, T_HASH) || NIL_P(values)) return Qnil;
    row = rb_ary_new_capa(RARRAY_LEN(names));
    for (long i = 0; i < RARRAY_LEN(names); i++) {
        VALUE coder = rb_ary_entry(coders, i);
        VALUE value = NIL_P(coder) ? Qnil : loaded_value(rb_ary_entry(names, i), coder, assigned, casted, values);
        if (value == Qundef) rb_ary_store(coders, i, value = Qnil);
        rb_ary_push(row, value);
    }
    return row;
}

/*
 * Native.loaded_rows(records, attribute_set, names, coders) → an Array for each record, with nil where coders has nil; nil unless
 * the attributes of each record are an attribute_set. Sets those coders to nil whose values the records' readers have to read.
 */
static VALUE loaded_rows(VALUE self, VALUE records, VALUE attribute_set, VALUE names, VALUE coders)
{
    VALUE rows;
    Check_Type(records, T_ARRAY);
    Check_Type(names, T_ARRAY);
    Check_Type(coders, T_ARRAY);
    rows = rb_ary_new_capa(RARRAY_LEN(records));
    for (long i = 0; i < RARRAY_LEN(records); i++) {
        VALUE set = rb_ivar_get(rb_ary_entry(records, i), id_attributes), row;
        if (SPECIAL_CONST_P(set) || rb_obj_class(set) != attribute_set || NIL_P(row = loaded_row(set, names, coders))) return Qnil;
        rb_ary_push(rows, row);
    }
    return rows;
}

void Init_loaded(VALUE castellan)
{
    rb_define_singleton_method(rb_define_module_under(castellan, "Native"), "loaded_rows", loaded_rows, 4);
    id_attributes = rb_intern("@attributes");
    id_casted_values = rb_intern("@casted_values");
    id_values = rb_intern("@values");
    id_key = rb_intern("key?");
    id_aref = rb_intern("[]");
    text = ID2SYM(rb_intern("text"));
    json = ID2SYM(rb_intern("json"));
}
